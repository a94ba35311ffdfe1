#!/bin/bash
# properties = {properties}
# Grid Engine announces the time limit by SIGUSR1 (s_rt) and qdel by SIGUSR2 (-notify). Rankfall writes a checkpoint on SIGTERM.
# The last line tells status.sh how the job ended; a killed job does not get there.
trap : TERM
trap 'kill -TERM 0' USR1 USR2
(trap '' USR1 USR2; trap : TERM; {exec_job}) &
until wait $! && code=0 || {{ code=$?; ! kill -0 $! 2>/dev/null; }}; do :; done
[ $code = 0 ] && touch .snakemake/gridengine/$JOB_ID.success || touch .snakemake/gridengine/$JOB_ID.failed
exit $code
