package wire

// DecodeBody is a whole body without its content coding, as the Content-Encoding header names it. ok is false for a
// coding that is not known, a damaged body, and one that decodes to more than 64 MiB.
func DecodeBody(coding string, body []byte) (plain []byte, ok bool) { return decodeAll(coding, body) }
