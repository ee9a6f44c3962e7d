"""Write the frozen files again: PYTHONPATH=tests python -m frozen"""

from frozen.snapshots import SNAPSHOTS, write

for name, snapshot in SNAPSHOTS.items():
    write(name, snapshot())
