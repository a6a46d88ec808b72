"""Input data of jobs: logical names that tie a job to the sites near their replicas."""
