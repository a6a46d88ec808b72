"""PostgreSQL and Valkey from wheels: found, configured and started, nothing installed on the host.

Only the server programs inside the wheels are used. The wheels' own Python classes stop a server
when the process that asked for it ends, which is wrong for servers that several processes share.
"""
