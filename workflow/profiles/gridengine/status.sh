#!/bin/sh
# Prints the state of a job, as Snakemake's cluster-generic plugin wants it: running, success or failed.
job=.snakemake/gridengine/$1
if [ -e "$job.success" ]; then
    rm -f "$job".*
    echo success
elif [ -e "$job.failed" ]; then
    rm -f "$job".*
    echo failed
elif said=$(qstat -j "$1" 2>&1); then
    rm -f "$job.gone"
    case $said in
    *"error reason"*) qdel "$1" >&2; echo failed ;; # Grid Engine cannot start it
    *) echo running ;;
    esac
else
    case $said in
    # Killed. But a shared file system may take a while to show the file by which a job that has ended says so.
    *"do not exist"*)
        [ -e "$job.gone" ] || touch "$job.gone"
        [ -n "$(find "$job.gone" ! -newermt '30 seconds ago')" ] && echo failed || echo running
        ;;
    *) echo running ;; # the scheduler does not answer
    esac
fi
