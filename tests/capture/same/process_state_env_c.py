import subprocess

print(
    sorted(
        l for l in subprocess.run(["env"], capture_output=True, text=True).stdout.splitlines() if not l.startswith("_=")
    )
)
