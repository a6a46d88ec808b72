from pathlib import Path
import tempfile
from wms.pilots.agent import sandbox
d=Path(tempfile.mkdtemp()); (d/"x").symlink_to("x")
for n in ("x","a"*300,"x/y"):
    try: print(n[:5], sandbox.find_output(d,n))
    except BaseException as e: print(n[:5], type(e),e)
