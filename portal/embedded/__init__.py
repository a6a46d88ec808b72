"""PostgreSQL and Valkey from wheels, configured and started without installing them on the host.

Only the server programs inside the wheels are used. The wheels' own Python classes stop a server
when the process that started it ends, which is wrong for servers that several processes share.
"""
