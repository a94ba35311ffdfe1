GROUPS = "number of groups, by time"
LAST = "number of groups at score scale 4, by time"
