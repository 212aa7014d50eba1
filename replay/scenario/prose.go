package scenario

import (
	"math"
	"strings"
)

// Prose is text that reads like a chronicle of a small town and means nothing in particular. It is generated from the lists
// below, so that it belongs to nobody, has no end, and is the same on every machine. It is what long prompts are filled
// with: words as models know them, in sentences that do not repeat for a long time, without codes or numbers that could
// be taken for an answer.

// charsPerToken is what the prose comes to with the vocabularies of present models, about. Sizes in tokens are estimates
// by it; what a prompt really had is what the engine reports.
const charsPerToken = 4.6

// charsOf is how long a text of so many tokens is, about.
func charsOf(tokens int) int { return int(math.Round(float64(tokens) * charsPerToken)) }

// The lists that sentences are made of.
func proseWords() map[byte][]string {
	return map[byte][]string{
		'w': { // who
			"the harbor master", "a young surveyor", "the baker's eldest daughter", "an old clockmaker", "the keeper of the archive",
			"a visiting botanist", "the ferry crew", "two apprentices from the print shop", "the night watchman", "a retired schoolteacher",
			"the council's treasurer", "a glassblower from the hills", "the choir leader", "a carpenter with steady hands", "the librarian",
			"the postmaster", "a painter of signs", "the widow who ran the inn", "a mapmaker", "the owner of the sawmill",
		},
		'd': { // did
			"repaired", "carried away", "sorted", "described in a letter", "measured", "hid behind a shelf", "traded", "painted over",
			"brought back", "asked about", "counted twice", "forgot", "wrapped in linen", "wrote a note on", "refused to sell", "inherited",
			"showed to the neighbors", "sketched", "polished", "argued about",
		},
		'o': { // what
			"the copper kettle", "a bundle of tide tables", "the broken weather vane", "three crates of pears", "a ledger with a green spine",
			"the bell rope", "a lantern without a wick", "the plans of the old mill", "a jar of blue pigment", "the long oak table",
			"a chest of winter coats", "the brass telescope", "an unfinished quilt", "the garden gate", "a sack of seed potatoes",
			"the wheel of the ox cart", "a box of type", "the portrait in the hallway", "a coil of tarred rope", "the stove in the schoolroom",
		},
		'p': { // where
			"near the fish market", "below the chapel", "at the bend of the river", "in the attic of the town hall", "along the northern road",
			"behind the bakery", "on the stone pier", "under the chestnut trees", "beside the mill pond", "at the edge of the common",
			"across from the inn", "in the lane of the weavers", "by the well", "on the ferry", "inside the boat shed", "above the quarry",
		},
		't': { // when
			"early in the morning", "after the first frost", "on market day", "before the bells rang", "late in the summer", "when the fog lifted",
			"during the long rain", "at low tide", "as the lamps were lit", "shortly before the harvest", "in the quiet week after the fair",
			"while the bridge was closed", "at the end of the winter", "on the way home",
		},
		'r': { // result
			"and nobody in the street spoke of it again", "which pleased the children most of all", "although the reason was never written down",
			"so the meeting was put off until the roads were dry", "and the smell of wet wool stayed in the room for days",
			"because the wind had turned to the east", "which made the evening pass more quickly", "and a small crowd gathered to watch",
			"while the dogs slept beside the door", "but the weather kept most people indoors", "as had been the custom for generations",
			"and the story was told differently in every house", "though the old clock said otherwise", "to the surprise of the visitors",
		},
	}
}

// proseFrames are the forms of sentences; the letters in braces stand for a list.
var proseFrames = [...]string{
	"{T}, {w} {d} {o} {p}.",
	"{W} {d} {o} {p}, {r}.",
	"{P}, {w} {d} {o}, {r}.",
	"{W} and {w} met {p} {t}, {r}.",
	"It was {w} who {d} {o} {t}.",
	"{T} somebody left {o} {p}, {r}.",
	"Nobody could say why {w} {d} {o}, yet {w} {d} {o} as well.",
	"{W} spoke of {o} {p}, and {w} listened {t}.",
	"Those who lived {p} remembered that {w} {d} {o} {t}.",
	"{O} was found {p} {t}, {r}.",
}

// prose makes sentences one after the other. The same seed makes the same ones.
type prose struct {
	state uint64
	words map[byte][]string
}

func newProse(seed uint64) *prose { return &prose{state: seed, words: proseWords()} }

// next is the next number of splitmix64. The generators of the library do not promise their numbers for all time.
func (p *prose) next() uint64 {
	p.state += 0x9e3779b97f4a7c15
	z := p.state
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (p *prose) pick(from []string) string { return from[p.next()%uint64(len(from))] }

// sentence is the next sentence.
func (p *prose) sentence() string {
	frame := p.pick(proseFrames[:])
	var b strings.Builder
	for i := 0; i < len(frame); i++ {
		if frame[i] != '{' {
			b.WriteByte(frame[i])
			continue
		}
		list := frame[i+1]
		word := p.pick(p.words[list|0x20])
		if list < 'a' { // the beginning of the sentence
			word = strings.ToUpper(word[:1]) + word[1:]
		}
		b.WriteString(word)
		i += 2
	}
	return b.String()
}

// sentencesPerParagraph is how many sentences stand together.
const sentencesPerParagraph = 6

// document is prose of about so many characters, as paragraphs, with sentences of the caller's at parts of its length.
// The last sentence ends where the length is reached.
func document(seed uint64, chars int, hidden []needle) string {
	p := newProse(seed)
	var b strings.Builder
	put := 0
	for n := 0; b.Len() < chars; n++ {
		switch {
		case n == 0:
		case n%sentencesPerParagraph == 0:
			b.WriteString("\n\n")
		default:
			b.WriteByte(' ')
		}
		if put < len(hidden) && float64(b.Len()) >= hidden[put].depth*float64(chars) {
			b.WriteString(hidden[put].text + " ")
			put++
		}
		b.WriteString(p.sentence())
	}
	for ; put < len(hidden); put++ { // of a document too short for its places
		b.WriteString(" " + hidden[put].text)
	}
	return b.String()
}

// needle is a sentence that is hidden in a document.
type needle struct {
	depth float64 // part of the length before it, 0 to 1
	text  string
}
