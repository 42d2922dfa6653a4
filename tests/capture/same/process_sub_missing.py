import subprocess

subprocess.run(["no_such_program"])
