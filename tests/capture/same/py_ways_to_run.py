# modes: run watch prove
import runpy
import subprocess
import sys
import tempfile
from pathlib import Path

folder = Path(tempfile.mkdtemp())
show = (
    "import sys\n"
    "print(__name__, __spec__ and __spec__.name, '__file__' in globals(), [a.rpartition('/')[2] for a in sys.argv],"
    " sys.path[0].rpartition('/')[2][:3], sorted(k for k in globals() if k.startswith('__')), sys.flags.isolated)\n"
)
(folder / "pkg").mkdir()
(folder / "pkg" / "__init__.py").write_text("")
(folder / "pkg" / "__main__.py").write_text(show)
(folder / "pkg" / "part.py").write_text(show)
(folder / "script.py").write_text(show)
(folder / "with_main").mkdir()
(folder / "with_main" / "__main__.py").write_text(show)
for words, text in (
    (["-c", show, "x"], None), (["-m", "pkg", "x"], None), (["-m", "pkg.part"], None), (["-", "x"], show),
    ([], show), (["script.py"], None), (["with_main"], None), (["-I", "script.py"], None), (["-m", "no_such"], None),
    (["no_such.py"], None), (["-c", "1/0"], None), (["-c", "import sys; sys.exit('said')"], None), (["-m", "pkg.no"], None),
    (["-x", "script.py"], None), (["-V"], None), (["-c", "raise SystemExit(3)"], None),
):  # fmt: skip
    done = subprocess.run([sys.executable, *words], input=text, cwd=folder, capture_output=True, text=True, check=False)
    errors = [line for line in done.stderr.splitlines() if not line.startswith("stepscope")]
    print(words[:2], done.returncode, done.stdout.strip(), [line.rpartition("/")[2] for line in errors])
sys.path.insert(0, str(folder))
found = runpy.run_path(str(folder / "script.py"), run_name="ran")
print(sorted(found)[:3], sys.argv[0].rpartition("/")[2])
print(runpy.run_module("pkg.part", alter_sys=True)["__name__"], sys.modules["__main__"].__name__)
