package pysource

// Function is a function or a lambda.
type Function struct {
	Name       string // "" for a lambda
	Line       int    // from 1
	Async      bool
	Params     []Param
	decorators []*node
	outer      []*node // annotations and bounds of type parameters
	body       *node
}

// ParamKind says how a parameter takes its argument.
type ParamKind uint8

// The kinds of parameters, in the order in which they stand.
const (
	ParamPositionOnly ParamKind = iota // before the /
	ParamPlain
	ParamRest     // *args
	ParamNameOnly // behind the *
	ParamNamed    // **kwargs
)

// Param is a parameter.
type Param struct {
	Name    string
	Kind    ParamKind
	Default bool   // it has one
	Integer *int64 // the default, when it is an integer literal
	value   *node
}

// paramList reads a list of parameters.
type paramList struct {
	p                 *parser
	fn                *Function
	annotated         bool // annotations may stand
	star, slash, rest bool // the sign has been read
	bare              bool // the last thing read was a star alone
	defaults          bool // a positional parameter had a default
}

// params reads parameters up to the token that ends them.
func (p *parser) params(fn *Function, end string, annotated bool) {
	l := paramList{p: p, fn: fn, annotated: annotated}
	for !p.is(end) {
		l.one()
		if !p.is(end) {
			p.expect(",")
		} else if l.bare {
			break
		}
	}
	if l.bare {
		p.fail("a parameter with a name is expected behind the star")
	}
}

func (l *paramList) one() {
	p := l.p
	if l.rest {
		p.fail("nothing follows the parameter for named arguments")
	}
	switch {
	case p.accept("/"):
		l.positionOnly()
	case p.accept("**"):
		if l.bare {
			p.fail("a parameter with a name is expected behind the star")
		}
		l.rest = true
		l.add(ParamNamed)
	case p.accept("*"):
		if l.star {
			p.fail("a second star among the parameters")
		}
		l.star = true
		if p.tok().kind != tokenName {
			l.bare = true
			return
		}
		l.add(ParamRest)
	default:
		kind := ParamPlain
		if l.star {
			kind = ParamNameOnly
		}
		l.add(kind)
	}
	l.bare = false
}

// positionOnly makes what stands before the slash take arguments by position only.
func (l *paramList) positionOnly() {
	if l.slash || l.star || len(l.fn.Params) == 0 {
		l.p.fail("a slash has no place here")
	}
	l.slash = true
	for i := range l.fn.Params {
		l.fn.Params[i].Kind = ParamPositionOnly
	}
}

// add reads a parameter: name, annotation, default.
func (l *paramList) add(kind ParamKind) {
	p := l.p
	param := Param{Name: p.identifier(), Kind: kind}
	if l.annotated && p.accept(":") {
		if kind == ParamRest {
			l.fn.outer = append(l.fn.outer, p.starExpression())
		} else {
			l.fn.outer = append(l.fn.outer, p.expression())
		}
	}
	if p.is("=") {
		if kind == ParamRest || kind == ParamNamed {
			p.fail("this parameter cannot have a default")
		}
		p.expect("=")
		param.Default, param.value = true, p.expression()
		param.Integer = integerOf(param.value)
	}
	if kind == ParamPlain {
		if l.defaults && !param.Default {
			p.fail("a parameter without a default follows one with a default")
		}
		l.defaults = l.defaults || param.Default
	}
	l.fn.Params = append(l.fn.Params, param)
}

// integerOf is the value of a node that is an integer literal, else nil.
func integerOf(n *node) *int64 {
	if n.kind != nodeConst || n.text == "" || !isDigit(n.text[0]) {
		return nil
	}
	v, ok := integer(n.text)
	if !ok {
		return nil
	}
	return &v
}

// typeParams are the type parameters of a function, a class or a type alias, if there are any.
func (p *parser) typeParams() []*node {
	if !p.accept("[") {
		return nil
	}
	var out []*node
	for first := true; first || !p.is("]"); first = false {
		star := p.accept("*")
		if star || p.accept("**") {
			p.identifier()
		} else {
			p.identifier()
			if p.accept(":") {
				out = append(out, p.expression())
			}
		}
		if p.accept("=") {
			if star {
				out = append(out, p.starExpression())
			} else {
				out = append(out, p.expression())
			}
		}
		if !p.is("]") {
			p.expect(",")
		}
	}
	p.expect("]")
	return out
}
