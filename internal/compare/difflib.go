package compare

import (
	"slices"
	"strings"
	"unicode"
)

// autojunkLength is the length of the second text from which characters that make up more than a hundredth of it, plus
// one, are no anchors: the default of Python's difflib.
const autojunkLength = 200

// Ratio is difflib.SequenceMatcher(None, a, b).ratio() of Python 3: twice the characters in matching blocks over the
// characters of both texts, 1 for two empty ones. Its value depends on the order of the texts: a is the one under test,
// b the reference.
func Ratio(a, b string) float64 {
	m := newMatcher([]rune(a), []rune(b))
	total := len(m.a) + len(m.b)
	if total == 0 {
		return 1
	}
	return 2 * float64(m.matches()) / float64(total)
}

// matcher finds matching blocks.
type matcher struct {
	a, b []rune
	at   map[rune][]int // places of a character in b, popular ones left out
	// lengths of the matches that end at each place of b, for the character of a before and for the present one. Only
	// the places that touched names are not 0.
	before, now   []int
	touched, next []int
}

func newMatcher(a, b []rune) *matcher {
	m := &matcher{a: a, b: b, at: map[rune][]int{}, before: make([]int, len(b)+1), now: make([]int, len(b)+1)}
	for i, r := range b {
		m.at[r] = append(m.at[r], i)
	}
	if len(b) >= autojunkLength {
		most := len(b)/100 + 1
		for r, places := range m.at {
			if len(places) > most {
				delete(m.at, r)
			}
		}
	}
	return m
}

// block is a stretch of a and of b that is the same.
type block struct{ a, b, size int }

// span is a part of a and a part of b.
type span struct{ alo, ahi, blo, bhi int }

// matches is the number of characters in all matching blocks.
func (m *matcher) matches() int {
	sum := 0
	queue := []span{{0, len(m.a), 0, len(m.b)}}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		best := m.longest(s)
		if best.size == 0 {
			continue
		}
		sum += best.size
		if s.alo < best.a && s.blo < best.b {
			queue = append(queue, span{s.alo, best.a, s.blo, best.b})
		}
		if best.a+best.size < s.ahi && best.b+best.size < s.bhi {
			queue = append(queue, span{best.a + best.size, s.ahi, best.b + best.size, s.bhi})
		}
	}
	return sum
}

// longest is the longest matching block in s that anchors allow, the first in a and then in b of several, grown by equal
// characters on both sides whether they are anchors or not.
func (m *matcher) longest(s span) block {
	best := block{s.alo, s.blo, 0}
	for i := s.alo; i < s.ahi; i++ {
		places := m.at[m.a[i]]
		from, _ := slices.BinarySearch(places, s.blo)
		for _, j := range places[from:] {
			if j >= s.bhi {
				break
			}
			size := m.before[j] + 1 // before[j] is the match that ends at j-1
			m.now[j+1] = size
			m.next = append(m.next, j+1)
			if size > best.size {
				best = block{i - size + 1, j - size + 1, size}
			}
		}
		m.turn()
	}
	m.turn()
	for best.a > s.alo && best.b > s.blo && m.a[best.a-1] == m.b[best.b-1] {
		best.a, best.b, best.size = best.a-1, best.b-1, best.size+1
	}
	for best.a+best.size < s.ahi && best.b+best.size < s.bhi && m.a[best.a+best.size] == m.b[best.b+best.size] {
		best.size++
	}
	return best
}

// turn makes the present row the one before, and the present one empty.
func (m *matcher) turn() {
	for _, j := range m.touched {
		m.before[j] = 0
	}
	m.before, m.now = m.now, m.before
	m.touched, m.next = m.next, m.touched[:0]
}

// joinSpace is a text with every stretch of white space as one blank and none at the ends, as " ".join(text.split())
// of Python makes it.
func joinSpace(s string) string {
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || 0x1c <= r && r <= 0x1f }), " ")
}
