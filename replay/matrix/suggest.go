package matrix

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

func contains(list []string, s string) bool { return slices.Contains(list, s) }

// suggest ends the sentence about a word that is none: the nearest one, where one is near, and all that there are.
func suggest(word string, known []string) string {
	if len(known) == 0 {
		return "; there are none"
	}
	text := "; there are " + strings.Join(known, ", ")
	if near := nearest(word, known); near != "" {
		text = fmt.Sprintf("; did you mean %q?%s", near, strings.Replace(text, ";", "", 1))
	}
	return text
}

// nearest is the known word with the fewest edits, "" when none is near enough to be meant.
func nearest(word string, known []string) string {
	best, least := "", max(2, len(word)/3)+1
	for _, k := range known {
		if d := edits(strings.ToLower(word), strings.ToLower(k)); d < least {
			best, least = k, d
		}
	}
	return best
}

// edits is the number of insertions, deletions, changes and swaps of neighbors that make a of b.
func edits(a, b string) int {
	rows := [][]int{make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)}
	for j := range rows[1] {
		rows[1][j] = j
	}
	for i := 1; i <= len(a); i++ {
		before, above, row := rows[0], rows[1], rows[2]
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := above[j-1]
			if a[i-1] != b[j-1] {
				change++
			}
			row[j] = min(change, above[j]+1, row[j-1]+1)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		rows = [][]int{above, row, before}
	}
	return rows[1][len(b)]
}

// uniq leaves out what was there before, and keeps the order.
func uniq[T cmp.Ordered](list []T) []T {
	var out []T
	for _, v := range list {
		if !slices.Contains(out, v) {
			out = append(out, v)
		}
	}
	return out
}
