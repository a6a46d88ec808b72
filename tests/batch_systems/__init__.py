"""Real batch systems for tests: each starts from Debian's packages, keeps all its state in one
folder, needs neither systemd nor cgroups, and is stopped by what it wrote there.

By hand: `python -m tests.batch_systems.slurm start FOLDER`, likewise `sshd`, and `stop`.
"""
