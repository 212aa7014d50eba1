package pysource

// atom is the smallest expression.
func (p *parser) atom() *node {
	t := p.tok()
	switch t.kind {
	case tokenName:
		p.at++
		return &node{kind: nodeName, text: t.text}
	case tokenNumber:
		p.at++
		return &node{kind: nodeConst, text: t.text}
	case tokenString:
		return p.stringAtom()
	}
	switch {
	case p.is("None"), p.is("True"), p.is("False"), p.is("..."):
		p.at++
		return &node{kind: nodeConst, text: t.text}
	case p.is("("):
		return p.parenthesized()
	case p.is("["):
		return p.listAtom()
	case p.is("{"):
		return p.braces()
	}
	p.unexpected("an expression")
	return nil
}

// stringAtom joins the strings that stand beside each other.
func (p *parser) stringAtom() *node {
	n := &node{kind: nodeConst}
	kinds := map[byte]bool{}
	for p.tok().kind == tokenString {
		s := p.tok().str
		kinds[s.kind] = true
		n.kids = append(n.kids, p.fields(s.fields)...)
		p.at++
	}
	if len(kinds) > 1 && (kinds['b'] || kinds['t']) {
		p.fail("strings of different kinds stand beside each other")
	}
	return n
}

// fields are the expressions in the fields of an f-string, those of their formats among them.
func (p *parser) fields(fields []field) []*node {
	var out []*node
	for _, f := range fields {
		sub := &parser{toks: f.toks, depth: p.depth}
		sub.enter()
		out = append(out, sub.yieldOr(sub.expressions))
		if sub.tok().kind != tokenEnd {
			sub.unexpected("the end of the field")
		}
		out = append(out, p.fields(f.spec)...)
	}
	return out
}

// yieldOr is a yield, or else what the rule reads.
func (p *parser) yieldOr(rule func() *node) *node {
	if !p.accept("yield") {
		return rule()
	}
	if p.accept("from") {
		return other(p.expression())
	}
	if !p.startsExpression() {
		return other()
	}
	return other(p.expressions())
}

// parenthesized is a tuple, a generator expression, or an expression in parentheses.
func (p *parser) parenthesized() *node {
	p.expect("(")
	if p.accept(")") {
		return &node{kind: nodeTuple, parens: true}
	}
	var n *node
	if p.is("yield") {
		n = p.yieldOr(nil)
	} else {
		star := p.is("*")
		n = p.list(p.starNamed)
		switch {
		case p.startsComprehension():
			p.refuseStar(n)
			n = p.comprehension(n)
		case star && n.kind == nodeStar:
			p.fail("a starred expression stands alone")
		}
	}
	p.expect(")")
	n.parens = true
	return n
}

// refuseStar refuses what cannot be the element of a comprehension.
func (p *parser) refuseStar(n *node) {
	if n.kind == nodeStar {
		p.fail("an element of a comprehension cannot be unpacked")
	}
	if n.kind == nodeTuple && !n.parens {
		p.fail("a tuple of a comprehension needs parentheses")
	}
}

// listAtom is a list or a list comprehension.
func (p *parser) listAtom() *node {
	p.expect("[")
	n := &node{kind: nodeList}
	for !p.is("]") {
		n.kids = append(n.kids, p.starNamed())
		if len(n.kids) == 1 && p.startsComprehension() {
			p.refuseStar(n.kids[0])
			n = p.comprehension(n.kids[0])
			break
		}
		if !p.is("]") {
			p.expect(",")
		}
	}
	p.expect("]")
	return n
}

// braces is a dict, a set, or a comprehension of one.
func (p *parser) braces() *node {
	p.expect("{")
	n := other()
	dict := p.is("**")
	for first := true; !p.is("}"); first = false {
		item, pair := p.braced()
		if first {
			dict = pair
		}
		if pair != dict {
			p.fail("a dict and a set in one")
		}
		n.kids = append(n.kids, item)
		if first && p.startsComprehension() {
			p.refuseStar(item)
			n = p.comprehension(item)
			break
		}
		if !p.is("}") {
			p.expect(",")
		}
	}
	p.expect("}")
	return n
}

// braced is an item between braces; pair says that it belongs in a dict.
func (p *parser) braced() (item *node, pair bool) {
	if p.accept("**") {
		return &node{kind: nodeStar, kids: []*node{p.binary(0)}}, true
	}
	naming := p.startsNaming()
	key := p.starNamed()
	if key.kind == nodeStar || naming || !p.is(":") {
		return key, false
	}
	p.expect(":")
	return other(key, p.expression()), true
}

func (p *parser) startsComprehension() bool {
	return p.is("for") || p.is("async") && p.next(1).kind == tokenKeyword && p.next(1).text == "for"
}

// comprehension reads the clauses behind an element.
func (p *parser) comprehension(element *node) *node {
	n := &node{kind: nodeComp}
	for p.startsComprehension() {
		p.accept("async")
		p.expect("for")
		target := p.targets()
		p.expect("in")
		n.kids = append(n.kids, p.disjunction(), target)
		for p.accept("if") {
			n.kids = append(n.kids, p.disjunction())
		}
	}
	n.kids = append(n.kids, element)
	return n
}

// targets are those of a for: names, attributes and subscripts, and tuples and lists of them.
func (p *parser) targets() *node { return p.stored(p.list(p.target)) }

// target is one target, which an `in` may follow.
func (p *parser) target() *node {
	if p.accept("*") {
		return &node{kind: nodeStar, kids: []*node{p.primary()}}
	}
	return p.primary()
}
