package pysource

// statement reads one statement, or a line of simple ones, into the block.
func (p *parser) statement(block *node) {
	if n := p.compound(); n != nil {
		block.kids = append(block.kids, n)
		return
	}
	p.line(block)
}

// line reads simple statements up to the end of the line.
func (p *parser) line(block *node) {
	for {
		block.kids = append(block.kids, p.simple())
		if !p.accept(";") || p.tok().kind == tokenNewline {
			break
		}
	}
	p.kind(tokenNewline, "the end of the line")
}

// simple reads a simple statement.
func (p *parser) simple() *node {
	t := p.tok()
	if t.kind != tokenKeyword {
		if n := p.alias(); n != nil {
			return n
		}
		return p.assignment()
	}
	switch t.text {
	case "pass", "break", "continue":
		p.at++
		return other()
	case "return":
		p.at++
		if !p.startsExpression() {
			return other()
		}
		return other(p.expressions())
	case "raise":
		return p.raise()
	case "global":
		return p.declared(nodeGlobal)
	case "nonlocal":
		return p.declared(nodeNonlocal)
	case "del":
		return p.del()
	case "assert":
		p.at++
		n := other(p.expression())
		if p.accept(",") {
			n.kids = append(n.kids, p.expression())
		}
		return n
	case "import":
		return p.importModules()
	case "from":
		return p.importNames()
	}
	return p.assignment()
}

func (p *parser) raise() *node {
	p.expect("raise")
	n := other()
	if p.startsExpression() {
		n.kids = append(n.kids, p.expression())
		if p.accept("from") {
			n.kids = append(n.kids, p.expression())
		}
	}
	return n
}

// declared reads the names of a global or nonlocal statement.
func (p *parser) declared(kind nodeKind) *node {
	p.at++
	n := &node{kind: kind}
	for {
		n.kids = append(n.kids, &node{text: p.identifier()})
		if !p.accept(",") {
			return n
		}
	}
}

func (p *parser) del() *node {
	p.expect("del")
	targets := p.list(p.primary)
	p.deleted(targets)
	return &node{kind: nodeAssign, kids: []*node{nil, targets}}
}

// alias is a type alias, nil when none comes.
func (p *parser) alias() *node {
	if !p.soft("type") || p.next(1).kind != tokenName {
		return nil
	}
	p.at++
	name := bound(p.identifier())
	n := other(p.typeParams()...)
	p.expect("=")
	return &node{kind: nodeAssign, kids: []*node{other(append(n.kids, p.expression())...), name}}
}

// importModules is import a.b as c, d. It binds the first part of a name, or the other name.
func (p *parser) importModules() *node {
	p.expect("import")
	n := &node{kind: nodeAssign, kids: []*node{nil}}
	for {
		name := p.identifier()
		for p.accept(".") {
			p.identifier()
		}
		if p.accept("as") {
			name = p.identifier()
		}
		n.kids = append(n.kids, bound(name))
		if !p.accept(",") {
			return n
		}
	}
}

// importNames is from a import b as c, d.
func (p *parser) importNames() *node {
	p.expect("from")
	dots := false
	for p.accept(".") || p.accept("...") {
		dots = true
	}
	if !dots || !p.is("import") {
		p.identifier()
		for p.accept(".") {
			p.identifier()
		}
	}
	p.expect("import")
	n := &node{kind: nodeAssign, kids: []*node{nil}}
	if p.accept("*") {
		return n
	}
	parens := p.accept("(")
	for {
		name := p.identifier()
		if p.accept("as") {
			name = p.identifier()
		}
		n.kids = append(n.kids, bound(name))
		if !p.accept(",") || parens && p.is(")") {
			break
		}
	}
	if parens {
		p.expect(")")
	}
	return n
}

// assignment is an expression, an assignment, one with an operator, or an annotated one.
func (p *parser) assignment() *node {
	yield := p.is("yield")
	first := p.yieldOr(p.expressions)
	switch {
	case p.is(":") && !yield:
		return p.annotated(first)
	case p.augmented():
		p.at++
		target := p.single(first)
		return &node{kind: nodeAug, kids: []*node{p.yieldOr(p.expressions), target}}
	case !p.is("="):
		return first
	}
	n := &node{kind: nodeAssign, kids: []*node{nil}}
	value := first
	for p.accept("=") {
		if yield {
			p.fail("a yield cannot be assigned to")
		}
		n.kids = append(n.kids, p.stored(value))
		yield = p.is("yield")
		value = p.yieldOr(p.expressions)
	}
	n.kids[0] = value
	return n
}

func (p *parser) augmented() bool {
	return p.isOneOf([]string{"+=", "-=", "*=", "@=", "/=", "%=", "&=", "|=", "^=", "<<=", ">>=", "**=", "//="})
}

// annotated is name: annotation = value. Without a value it binds nothing.
func (p *parser) annotated(target *node) *node {
	p.single(target)
	p.expect(":")
	annotation := p.expression()
	if !p.accept("=") {
		target.store = true
		return other(append(target.kids, annotation)...)
	}
	return &node{kind: nodeAssign, kids: []*node{other(p.yieldOr(p.expressions), annotation), target}}
}
