"""Peak memory of replay import, of two binaries by turns: rss.py OLD NEW FILE...

This program must stay small: a child's peak includes its parent's memory at the fork.
"""
import os, statistics, subprocess, sys


def run(cmd):
    pid = os.posix_spawn(cmd[0], cmd, os.environ, file_actions=[(os.POSIX_SPAWN_OPEN, 2, "/dev/null", os.O_WRONLY, 0)])
    _, status, usage = os.wait4(pid, 0)
    assert status == 0, cmd
    return usage.ru_maxrss / 1024, usage.ru_utime + usage.ru_stime


old, new = sys.argv[1:3]
for file in sys.argv[3:]:
    plain = int(subprocess.check_output(f"zcat '{file}' | wc -c", shell=True)) / 2**20
    runs = {"before": [], "after": []}
    for _ in range(9):
        for name, binary in zip(runs, (old, new)):
            runs[name].append(run([binary, "import", file, "-o", "/tmp/rss.arrows"]))
    for name, values in runs.items():
        peak = sorted(p for p, _ in values)
        print(f"{os.path.basename(file)} {name}: {plain:.1f} MiB unpacked, peak {statistics.median(peak):.1f} MiB ({peak[0]:.1f} to {peak[-1]:.1f}) "
              f"= {statistics.median(peak) / plain:.2f} of it, {statistics.median(c for _, c in values):.2f} s of processor time")
