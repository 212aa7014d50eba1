package pysource

// subject reads a match statement up to its first case. Since match is a name as well, the caller takes a failure for
// another statement.
func (p *parser) subject() *node {
	p.at++
	n := p.list(p.starNamed)
	if n.kind == nodeStar {
		p.fail("a starred subject stands alone")
	}
	p.expect(":")
	p.kind(tokenNewline, "the end of the line")
	p.kind(tokenIndent, "an indented block")
	if !p.soft("case") {
		p.unexpected("case")
	}
	return n
}

// match is a match statement, nil when the name that comes begins another one.
func (p *parser) match() *node {
	subject := p.try(p.subject)
	if subject == nil {
		return nil
	}
	n := &node{kind: nodeMatch, kids: []*node{subject}}
	for p.soft("case") {
		p.at++
		c := &node{kind: nodeCase, kids: []*node{p.patterns(), nil, nil}}
		if p.accept("if") {
			c.kids[1] = p.named()
		}
		c.kids[2] = p.block()
		n.kids = append(n.kids, c)
	}
	p.kind(tokenDedent, "the end of the cases")
	return n
}

// patterns is one pattern, or a sequence of several without brackets.
func (p *parser) patterns() *node {
	star := p.is("*")
	first := p.starPattern()
	if star && !p.is(",") {
		p.fail("a starred pattern stands alone")
	}
	n := other(first)
	for p.accept(",") && !p.is(":") && !p.is("if") {
		n.kids = append(n.kids, p.starPattern())
	}
	return n
}

func (p *parser) starPattern() *node {
	if p.accept("*") {
		return capture(p.identifier())
	}
	return p.pattern()
}

// capture binds a name, unless it is the one that binds nothing.
func capture(name string) *node {
	if name == "_" {
		return other()
	}
	return bound(name)
}

// pattern is a choice of patterns that may be given a name.
func (p *parser) pattern() *node {
	p.enter()
	defer p.leave()
	n := other(p.closed())
	for p.accept("|") {
		n.kids = append(n.kids, p.closed())
	}
	if p.accept("as") {
		if p.soft("_") {
			p.fail("a pattern cannot be named _")
		}
		n.kids = append(n.kids, bound(p.identifier()))
		if p.is(".") || p.is("(") || p.is("=") {
			p.unexpected("the end of the pattern")
		}
	}
	return n
}

// closed is a pattern that needs no brackets around it.
func (p *parser) closed() *node {
	t := p.tok()
	switch {
	case t.kind == tokenName:
		return p.namePattern()
	case t.kind == tokenString:
		return p.stringAtom() // an f-string too: only the compiler refuses that
	case t.kind == tokenNumber, p.is("-"):
		return p.numberPattern()
	case p.is("None"), p.is("True"), p.is("False"):
		p.at++
		return other()
	case p.is("("), p.is("["):
		return p.sequencePattern()
	case p.is("{"):
		return p.mappingPattern()
	}
	p.unexpected("a pattern")
	return nil
}

// namePattern is a capture, a value with dots, or a class.
func (p *parser) namePattern() *node {
	name := p.identifier()
	if !p.is(".") && !p.is("(") {
		return capture(name)
	}
	value := &node{kind: nodeName, text: name}
	for p.accept(".") {
		p.identifier()
	}
	if !p.accept("(") {
		return value
	}
	n, keyword := other(value), false
	for !p.is(")") {
		if p.tok().kind == tokenName && p.next(1).kind == tokenOp && p.next(1).text == "=" {
			p.at += 2
			keyword = true
		} else if keyword {
			p.fail("a positional pattern follows a keyword pattern")
		}
		n.kids = append(n.kids, p.pattern())
		if !p.is(")") {
			p.expect(",")
		}
	}
	p.expect(")")
	return n
}

// numberPattern is a number that may have a sign and an imaginary part.
func (p *parser) numberPattern() *node {
	p.accept("-")
	first := p.kind(tokenNumber, "a number").text
	if p.is("+") || p.is("-") {
		p.at++
		second := p.kind(tokenNumber, "a number").text
		if imaginary(first) || !imaginary(second) {
			p.fail("a complex number in a pattern is a real and an imaginary part")
		}
	}
	return other()
}

func imaginary(number string) bool { return number[len(number)-1]|0x20 == 'j' }

// sequencePattern is a sequence, or one pattern in parentheses.
func (p *parser) sequencePattern() *node {
	closing := ")"
	if p.is("[") {
		closing = "]"
	}
	p.at++
	n := other()
	commas, star := false, false
	for !p.is(closing) {
		star = star || p.is("*")
		n.kids = append(n.kids, p.starPattern())
		if !p.is(closing) {
			p.expect(",")
			commas = true
		}
	}
	p.expect(closing)
	if closing == ")" && star && !commas {
		p.fail("a starred pattern stands alone")
	}
	return n
}

func (p *parser) mappingPattern() *node {
	p.expect("{")
	n := other()
	for !p.is("}") {
		if p.accept("**") {
			if p.soft("_") {
				p.fail("the rest of a mapping cannot be named _")
			}
			n.kids = append(n.kids, bound(p.identifier()))
			p.accept(",")
			break
		}
		n.kids = append(n.kids, p.mappingKey())
		p.expect(":")
		n.kids = append(n.kids, p.pattern())
		if !p.is("}") {
			p.expect(",")
		}
	}
	p.expect("}")
	return n
}

// mappingKey is a literal or a value with dots.
func (p *parser) mappingKey() *node {
	if p.tok().kind != tokenName {
		if p.is("(") || p.is("[") || p.is("{") {
			p.unexpected("a key")
		}
		return p.closed()
	}
	value := &node{kind: nodeName, text: p.identifier()}
	if !p.is(".") {
		p.unexpected("'.'")
	}
	for p.accept(".") {
		p.identifier()
	}
	return value
}
