package measure

import (
	"github.com/benchproxy/benchproxy/internal/exchange"
	"github.com/benchproxy/benchproxy/internal/stat"
)

const nsPerUS = 1e3

// stallNS is when a write counts as stalled: while it lasts nothing is read, so what comes next is stamped late where the
// kernel does not stamp, and reaches the client late everywhere.
const stallNS = 100 * 1e6

// cost derives what we added ourselves: the time bytes spent between their arrival and the end of their write to the
// client. With stamps of the kernel that includes the wait for our goroutine to be scheduled.
func (a *Analysis) cost(s *stream) {
	a.set(ProxyQueueMS, s.queue())
	added, stall := s.added()
	if len(added) == 0 {
		a.set(AddedP50US, exchange.Absent(unitUS, ReasonNoClientWrite))
		a.set(AddedP99US, exchange.Absent(unitUS, ReasonNoClientWrite))
		a.set(WriteStallMS, exchange.Absent(unitMS, ReasonNoClientWrite))
		return
	}
	a.set(AddedP50US, measured(stat.Quantile(added, 0.50), unitUS))
	a.set(AddedP99US, measured(stat.Quantile(added, 0.99), unitUS))
	a.set(WriteStallMS, measured(float64(stall)/nsPerMS, unitMS))
	a.flag(FlagWriteStalled, stall >= stallNS)
}

func (s *stream) queue() exchange.Figure {
	read, ok := s.x.Timeline.RequestRead.NS()
	if !ok || !s.sent {
		return exchange.Absent(unitMS, ReasonNotSent)
	}
	return measured(float64(s.t0-read)/nsPerMS, unitMS)
}

// added is the added time of every event in us, sorted, and the longest of any read in ns. Where the body is not read
// as events every read with a write counts once.
func (s *stream) added() (us []float64, stall int64) {
	reads := s.x.Timeline.Reads
	for i := range reads {
		stall = max(stall, reads[i].Write)
	}
	var ns []int64
	if s.streamed {
		ns = make([]int64, 0, len(s.t.Events))
		for i := range s.t.Events {
			if r := s.t.Events[i].Read; r >= 0 && r < len(reads) && reads[r].Write > 0 {
				ns = append(ns, reads[r].Write)
			}
		}
	}
	if len(ns) == 0 {
		for i := range reads {
			if reads[i].Write > 0 {
				ns = append(ns, reads[i].Write)
			}
		}
	}
	return sorted(ns, nsPerUS), stall
}
