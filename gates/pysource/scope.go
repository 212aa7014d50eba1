package pysource

// Function is the function that a name stands for once the module has run to its end: the last one defined under it at
// the top, whatever blocks it stands in there. Nested functions and methods are not looked at.
func (m *Module) Function(name string) (fn *Function, ok bool) {
	var find func(n *node)
	find = func(n *node) {
		switch {
		case n == nil || n.kind == nodeClass || n.kind == nodeLambda:
		case n.kind == nodeDef:
			if n.text == name {
				fn = n.fn
			}
		default:
			for _, kid := range n.kids {
				find(kid)
			}
		}
	}
	find(m.body)
	return fn, fn != nil
}

// Reads reports whether the body of the function reads its parameter: as a name that stands for the parameter, not for a
// variable that hides it, and before the body gives the name another value on every path. Strings, comments, names of
// attributes and arguments, and assignments to the name are no reads.
func (f *Function) Reads(param string) bool {
	return reader(param).flow(f.body) == useRead
}

// use is what a statement does with a name first.
type use uint8

const (
	useNone    use = iota // nothing on every path
	useRead               // reads it, on some path at least
	useReplace            // gives it another value on every path
)

// reader looks for reads of a name.
type reader string

// flow follows the name through a statement or a block in the order of its running.
func (r reader) flow(n *node) use {
	if n == nil {
		return useNone
	}
	switch n.kind {
	case nodeBlock, nodeWith:
		return r.inOrder(n.kids)
	case nodeIf:
		if r.loads(n.kids[0]) {
			return useRead
		}
		return both(r.flow(n.kids[1]), r.flow(n.kids[2]))
	case nodeWhile:
		return r.maybe(r.loads(n.kids[0]), n.kids[1:])
	case nodeFor:
		body := n.kids[2:]
		if r.binds(n.kids[1]) {
			body = n.kids[3:]
		}
		return r.maybe(r.loads(n.kids[0]) || r.loads(n.kids[1]), body)
	case nodeTry:
		return r.maybe(false, n.kids)
	case nodeMatch:
		return r.maybe(r.loads(n.kids[0]), n.kids[1:])
	case nodeCase:
		if r.loads(n.kids[0]) {
			return useRead
		}
		if r.binds(n.kids[0]) {
			return useReplace
		}
		return r.maybe(n.kids[1] != nil && r.loads(n.kids[1]), n.kids[2:])
	}
	switch {
	case r.loads(n):
		return useRead
	case n.kind != nodeAug && r.binds(n):
		return useReplace
	}
	return useNone
}

// inOrder is the first use in statements that run one after the other.
func (r reader) inOrder(ns []*node) use {
	for _, n := range ns {
		if u := r.flow(n); u != useNone {
			return u
		}
	}
	return useNone
}

// maybe is the use in blocks of which each may run or not.
func (r reader) maybe(read bool, blocks []*node) use {
	for _, b := range blocks {
		read = read || r.flow(b) == useRead
	}
	if read {
		return useRead
	}
	return useNone
}

// both is the use in two blocks of which one runs.
func both(a, b use) use {
	switch {
	case a == useRead || b == useRead:
		return useRead
	case a == b:
		return a
	}
	return useNone
}

// loads reports whether the name is read anywhere in the node, in any order.
func (r reader) loads(n *node) bool {
	if n == nil {
		return false
	}
	switch n.kind {
	case nodeName:
		return !n.store && n.text == string(r)
	case nodeLambda, nodeDef:
		return r.loadsFunction(n.fn)
	case nodeComp:
		if r.loads(n.kids[0]) {
			return true
		}
		for _, kid := range n.kids[1:] {
			if r.binds(kid) {
				return false // a variable of the comprehension hides it
			}
		}
	case nodeClass:
		body := n.kids[len(n.kids)-1]
		return r.loadsAny(n.kids[:len(n.kids)-1]) || !r.binds(body) && r.loads(body)
	}
	return r.loadsAny(n.kids)
}

func (r reader) loadsAny(ns []*node) bool {
	for _, n := range ns {
		if r.loads(n) {
			return true
		}
	}
	return false
}

// loadsFunction looks at what a function's definition reads where it stands, and at its body unless a variable of its own
// hides the name there.
func (r reader) loadsFunction(f *Function) bool {
	if r.loadsAny(f.decorators) || r.loadsAny(f.outer) {
		return true
	}
	hidden := false
	for _, p := range f.Params {
		if r.loads(p.value) {
			return true
		}
		hidden = hidden || p.Name == string(r)
	}
	if declared := r.declares(f.body); declared != nodeOther {
		hidden = hidden || declared == nodeGlobal
	} else {
		hidden = hidden || r.binds(f.body)
	}
	return !hidden && r.loads(f.body)
}

// declares is nodeGlobal or nodeNonlocal when a body declares the name so, else nodeOther.
func (r reader) declares(n *node) nodeKind {
	if n == nil || n.kind == nodeDef || n.kind == nodeLambda || n.kind == nodeClass {
		return nodeOther
	}
	for _, kid := range n.kids {
		if (n.kind == nodeGlobal || n.kind == nodeNonlocal) && kid.text == string(r) {
			return n.kind
		}
		if k := r.declares(kid); k != nodeOther {
			return k
		}
	}
	return nodeOther
}

// binds reports whether the node gives the name a value in the scope it stands in. What a comprehension binds stays in it.
func (r reader) binds(n *node) bool {
	switch {
	case n == nil || n.kind == nodeLambda:
		return false
	case n.kind == nodeName:
		return n.store && n.text == string(r)
	case n.kind == nodeDef || n.kind == nodeClass:
		return n.text == string(r)
	}
	kids := n.kids
	if n.kind == nodeComp {
		kids = kids[:1]
	}
	for _, kid := range kids {
		if r.binds(kid) {
			return true
		}
	}
	return false
}
