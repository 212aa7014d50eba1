package redact

// Keys finds the well-known keys in a text, wherever they stand in it: the first byte of each and one past its last.
// Text masks whole words of headers and messages; Keys is for bodies, where a key stands among quotes, brackets and
// other text, and must be found at its exact place.
func Keys[T string | []byte](text T) (found [][2]int) {
	for i := 0; i < len(text); i++ {
		if signs[text[i]] != hidesKey || i > 0 && isLetterOrDigit(text[i-1]) || !hasKeyPrefix(string(text[i:min(i+maxKeyPrefix, len(text))])) {
			continue
		}
		end := i
		for end < len(text) && isKeyByte(text[end]) {
			end++
		}
		for end > i && text[end-1] == '.' { // the end of a sentence
			end--
		}
		if end-i >= minKeyLength {
			found = append(found, [2]int{i, end})
		}
		i = max(i, end-1)
	}
	return found
}

// maxKeyPrefix is the length of the longest of keyPrefixes.
const maxKeyPrefix = len("github_pat_")

func isLetterOrDigit(c byte) bool {
	return '0' <= c && c <= '9' || 'a' <= c|0x20 && c|0x20 <= 'z'
}

func isKeyByte(c byte) bool { return isLetterOrDigit(c) || c == '-' || c == '_' || c == '.' }
