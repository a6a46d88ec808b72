"""Shell programs (`sh`) of `HostElement`: start a batch, status, cancel, forget, log.

For any POSIX shell with /proc, setsid and timeout. They travel by standard input
(`sh -s -- ARGUMENTS`), so that the same text works on this host and on another one, and nothing has
to be installed there.
"""

from __future__ import annotations

from collections.abc import Sequence

# Field 22 of /proc/PID/stat is the start time; what follows the last ")" begins with field 3.
# A zombie has ended: where pid 1 does not reap, it stays in /proc for ever.
_IS_ALIVE = r"""
is_alive() {
  read -r pid start 2>/dev/null <"$1/pid" || return 1
  { read -r stat <"/proc/$pid/stat"; } 2>/dev/null || return 1
  set -- "$start" ${stat##*) }
  [ "$2" != Z ] && [ "${21}" = "$1" ]
}
"""

# The leader of the pilot's session. It outlives a TERM sent to its group, to write the exit code;
# its children get the default back. It writes its pid before it looks for `cancel`, and who cancels
# does the two in the opposite order, so no pilot slips through. Without room for its pid, nobody
# could ever find the pilot: it is not started.
_LEADER = r"""
trap : HUP INT TERM
read -r stat <"/proc/$$/stat"
set -- ${stat##*) }
echo "$$ ${20}" >pid.new && mv pid.new pid || exit 1
rc=143
if [ ! -e cancel ]; then
  timeout --foreground -k 30 "${PILOTAGE_MINUTES}m" sh ./run >log 2>&1
  rc=$?
fi
echo "$rc" >rc.new
mv rc.new rc
"""

_SUBMIT = r"""
set -eu
umask 077
base=$1 name=$2 count=$3 cores=$4 memory_mb=$5 gpus=$6 minutes=$7
mkdir -p "$base"
cd "$base"
trap 'rm -f ".$name.run"' EXIT
cat >".$name.run" <<'@DELIMITER@'
@SCRIPT@
@DELIMITER@
secrets=$(cat <<'@DELIMITER@'
@SECRETS@
@DELIMITER@
)
set -- $secrets
born=$(date +%s)
index=0
while [ "$index" -lt "$count" ]; do
  id=$name.$index
  mkdir "$id"
  echo "$born" >"$id/born"
  { printf '#!/bin/sh\nPILOTAGE_SECRET=%s\n' "${1:-}"; cat ".$name.run"; } >"$id/run"
  [ "$#" -eq 0 ] || shift
  (
    cd "$id"
    exec setsid env -i PATH="$PATH" LANG="${LANG:-C.UTF-8}" HOME="$PWD" TMPDIR="$PWD" \
      PILOTAGE_INDEX="$index" PILOTAGE_SCRIPT="$PWD/run" PILOTAGE_CORES="$cores" \
      PILOTAGE_MEMORY_MB="$memory_mb" PILOTAGE_GPUS="$gpus" PILOTAGE_MINUTES="$minutes" \
      sh -c '@LEADER@'
  ) </dev/null >/dev/null 2>&1 &
  echo "$id"
  index=$((index + 1))
done
"""

#: Arguments: base. First line: clock and host; then one line for each pilot directory; last `END`.
#: A full disk leaves empty files behind, so each field has a placeholder and an empty `pid` counts
#: as none.
STATUS = (
    _IS_ALIVE
    + r"""
echo "$(date +%s) $(uname -n)"
[ -e "$1" ] || { echo END; exit 0; }
cd "$1" || exit 1
for id in *.*; do
  [ -f "$id/born" ] || continue
  alive=0 rc=- cancel=0 pid_written=0 born=0
  [ -s "$id/pid" ] && pid_written=1
  [ ! -f "$id/rc" ] && is_alive "$id" && alive=1
  # Read after the look at the process: one that ended in between has left its code by now.
  [ -f "$id/rc" ] && read -r rc <"$id/rc"
  [ -e "$id/cancel" ] && cancel=1
  read -r born <"$id/born"
  echo "$id $alive ${rc:--} $cancel $pid_written ${born:--}"
done
echo END
"""
)

#: Arguments: base, grace in seconds, ids. TERM to the pilot's group now, KILL after the grace.
CANCEL = (
    _IS_ALIVE
    + r"""
cd "$1" 2>/dev/null || exit 0
grace=$2
shift 2
signal() {
  is_alive "$2" || return 1
  kill -s "$1" -- "-$pid" 2>/dev/null
}
ended=1
for id; do
  [ -d "$id" ] || continue
  : >"$id/cancel"
  signal TERM "$id" && ended=0
done
[ "$ended" = 1 ] && exit 0
( sleep "$grace"; for id; do signal KILL "$id"; done ) </dev/null >/dev/null 2>&1 &
exit 0
"""
)

#: Arguments: base, ids. Only what has ended goes.
FORGET = (
    _IS_ALIVE
    + r"""
cd "$1" 2>/dev/null || exit 0
shift
for id; do
  is_alive "$id" || rm -rf -- "$id" || exit 1
done
exit 0
"""
)

#: Arguments: base, bytes, id.
LOG = r"""
[ -f "$1/$3/log" ] || exit 0
tail -c "$2" "$1/$3/log"
"""


def submit_program(script: str, delimiter: str, secrets: Sequence[str]) -> str:
    """Return the program that starts a batch running `script`; no line of it may be `delimiter`.

    The script of each pilot has its own secret.
    """
    return (
        _SUBMIT.replace("@LEADER@", _LEADER)
        .replace("@DELIMITER@", delimiter)
        .replace("@SECRETS@", "\n".join(secrets))
        .replace("@SCRIPT@", script.removesuffix("\n"))
    )
