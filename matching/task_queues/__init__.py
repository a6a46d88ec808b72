"""TaskQueues: needs of jobs, resources of pilots, draws, and reruns."""
