package gates

import (
	"cmp"
	"slices"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

// severity are the words of a verdict, the one that counts most first. A check that does not apply counts only when
// none did.
var severity = []exchange.VerdictStatus{
	exchange.VerdictFail, exchange.VerdictNotRun, exchange.VerdictUnsupported, exchange.VerdictIncomparable, exchange.VerdictPartial,
	exchange.VerdictOK, exchange.VerdictSkipped,
}

// Sum is what the verdicts of one case come to, strictly and in the lenient reading: one that is not ok is enough. No
// verdict at all is not_run.
func Sum(verdicts []exchange.Verdict) (status, lenient exchange.VerdictStatus) {
	status, lenient = exchange.VerdictSkipped, exchange.VerdictSkipped
	if len(verdicts) == 0 {
		return exchange.VerdictNotRun, exchange.VerdictNotRun
	}
	for _, v := range verdicts {
		status = worse(status, v.Status)
		lenient = worse(lenient, cmp.Or(v.Lenient, v.Status))
	}
	return status, lenient
}

func worse(a, b exchange.VerdictStatus) exchange.VerdictStatus {
	if slices.Index(severity, b) < slices.Index(severity, a) {
		return b
	}
	return a
}
