"""Runs the steps of ARTEFACT.md and prints a table of its claims: python3 artefact.py [STEP...]. The output of the steps goes to $OUT, or to /tmp/artefact."""
import os, re, subprocess, sys, time

HERE = os.path.dirname(os.path.abspath(__file__))
OUT = os.environ.get("OUT", "/tmp/artefact")


def rows(title):
    """Returns the cells of the table below a title of ARTEFACT.md, without its head."""
    with open(os.path.join(HERE, "ARTEFACT.md")) as f:
        part = f.read().split(f"\n## {title}\n")[1].split("\n## ")[0]
    lines = [l for l in part.splitlines() if l.startswith("| ")][1:]
    return [[c.strip().replace("\\|", "|") for c in re.split(r"(?<!\\)\|", l)[1:-1]] for l in lines]


def run(name, command):
    began = time.time()
    with open(f"{OUT}/{name}.txt", "w") as out:
        status = subprocess.run(["bash", "-c", command], cwd=os.path.dirname(HERE), stdout=out, stderr=subprocess.STDOUT).returncode
        out.write(f"\nstatus {status} after {time.time() - began:.0f} s\n")
    return f"{name}: {'done' if status == 0 else f'status {status}'} after {time.time() - began:.0f} s"


def verdict(claim, where, figure, tolerance, step, pattern):
    try:
        text = open(f"{OUT}/{step}.txt").read()
    except FileNotFoundError:
        return "not run", ""
    if "\nstatus 0 after " not in text:
        return "FAILED", ""
    found = re.search(pattern.strip("`").replace("#", r"([\d.,]+)"), text, re.DOTALL)
    if not found:
        return "NOT FOUND", ""
    if not found.groups():
        return "holds", "as said"
    got, want = float(found[1].replace(",", "")), float(figure)
    room = want * float(tolerance[:-1]) / 100 if tolerance.endswith("%") else float(tolerance)
    return ("holds" if abs(got - want) <= room + 1e-9 else "DIFFERS"), found[1]


if __name__ == "__main__":
    os.makedirs(OUT, exist_ok=True)
    steps = {name: command.strip("`") for name, _, _, command in rows("Steps")}
    for name in sys.argv[1:] or steps:
        print(run(name, steps[name]), flush=True)
    print(f"\n{'claim':75} {'in':24} {'said':>17} {'found':>8}")
    bad = 0
    for row in rows("Claims"):
        word, found = verdict(*row)
        bad += word.isupper()
        print(f"{row[0].replace('`', ''):75} {row[1]:24} {row[2]:>17} {found:>8}  {word}")
    sys.exit(bad > 0)
