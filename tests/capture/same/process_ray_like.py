import base64
import subprocess
import sys

import cloudpickle


class C:
    def __init__(self, v):
        self.v = v

    def go(self):
        return self.v * 2


b = base64.b64encode(cloudpickle.dumps(C(4))).decode()
print(
    subprocess.run(
        [sys.executable, "-c", f'import cloudpickle, base64; print(cloudpickle.loads(base64.b64decode("{b}")).go())'],
        capture_output=True,
        text=True,
    ).stdout
)
