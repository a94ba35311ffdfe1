"""GEN: any other product of matrices.

A, B, C (buffer, offset each), outer, M, N, K | A offsets (outer) | B offsets | C offsets | A offsets (M) | A offsets (K)
| B offsets (N) | B offsets (K) | C offsets (M) | C offsets (N)
C[m, n] = sum over k of A[m, k] B[n, k]
"""

from rankfall.train.fused.compiled import compiled
from rankfall.train.machine.gather import place
from rankfall.train.machine.memory import ahead, real


@compiled
def general(scratch, table, bases, p):  # type: ignore[no-untyped-def]
    A, B, C = place(scratch, bases, p, 0), place(scratch, bases, p, 2), place(scratch, bases, p, 4)
    outer, rows, columns, count = p[6], p[7], p[8], p[9]
    oa = ahead(p, 10)
    ob = ahead(oa, outer)
    oc = ahead(ob, outer)
    ma = ahead(oc, outer)
    ka = ahead(ma, rows)
    nb = ahead(ka, count)
    kb = ahead(nb, columns)
    mc = ahead(kb, count)
    nc = ahead(mc, rows)
    for o in range(outer):
        for i in range(rows):
            a, c = ahead(A, oa[o] + ma[i]), ahead(C, oc[o] + mc[i])
            for j in range(columns):
                b, total = ahead(B, ob[o] + nb[j]), real(C, 0.0)
                for k in range(count):
                    total += a[ka[k]] * b[kb[k]]
                c[nc[j]] = total
