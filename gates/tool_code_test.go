package gates

import (
	"strings"
	"testing"

	"github.com/benchproxy/benchproxy/internal/exchange"
)

const goodEdit = `import re

def slugify_title(text, max_length=40):
    slug = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
    return slug[:max_length].rstrip("-")
`

func fencedCode(code string) reply {
	return reply{content: "Here it is:\n\n```python\n" + code + "```\n\nIt cuts at max_length."}
}

func editVerdict(t *testing.T, answer reply) exchange.Verdict {
	t.Helper()
	return (dialog{scenario: "code_edit"}).verdict(t, fencedCode("def slugify(text):\n    return text\n"), answer)
}

func TestCodeEditOfGoodAnswers(t *testing.T) {
	body := func(s string) string { return "def slugify_title(text, max_length=40):\n" + s }
	for name, code := range map[string]string{
		"plain":                goodEdit,
		"annotated":            "def slugify_title(text: str, max_length: int = 40) -> str:\n    return text[:max_length]\n",
		"other base":           "def slugify_title(text, max_length=0x28):\n    return text[:max_length]\n",
		"decorated":            "@cache\n@wraps(f, key=lambda x=(1, 2): x)\ndef slugify_title(text, max_length=(40)):\n    return text[:max_length]\n",
		"of a type":            "def slugify_title[T: str](text: T, max_length=40,) -> T:\n    return text[:max_length]\n",
		"in an f-string":       body("    return f\"{text[:max_length]!r:>{10}}\"\n"),
		"in a nested f-string": body("    return f'{f\"{text[:max_length]}\"}'\n"),
		"in a walrus":          body("    if (n := max_length) < 3:\n        return text[:n]\n    return text\n"),
		"in a comprehension":   body("    return ''.join(c for c in text[:max_length])\n"),
		"in a closure":         body("    def cut(s):\n        return s[:max_length]\n    return cut(text)\n"),
		"in a lambda":          body("    return (lambda s: s[:max_length])(text)\n"),
		"as a default":         body("    def cut(s, max_length=max_length):\n        return s[:max_length]\n    return cut(text)\n"),
		"in a match":           body("    match len(text):\n        case n if n > max_length:\n            return text[:n]\n        case _:\n            return text\n"),
		"set from itself":      body("    max_length = max(1, max_length)\n    return text[:max_length]\n"),
		"set on one path":      body("    if not text:\n        max_length = 1\n    return text[:max_length]\n"),
		"behind a docstring":   body("    \"\"\"Cuts at max_length.\n\n    def f(: pass\n    \"\"\"\n    return text[:max_length]\n"),
		"on one line":          "def slugify_title(text, max_length=40): return text[:max_length]\n",
		"defined twice":        "def slugify_title(text): return text\n" + goodEdit,
		"with the old beside":  "def slugify(text):\n    return text\n\n" + goodEdit + "\nslugify = slugify_title\n",
		"below an if":          "if True:\n    def slugify_title(text, max_length=40):\n        return text[:max_length]\n",
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, editVerdict(t, fencedCode(code)), exchange.VerdictOK, "")
			wantVerdict(t, editVerdict(t, reply{content: code}), exchange.VerdictOK, "")
		})
	}
	wantVerdict(t, editVerdict(t, reply{content: strings.ReplaceAll("```\n"+goodEdit+"```", "\n", "\r\n")}), exchange.VerdictOK, "")
}

func TestCodeEditOfBrokenAnswers(t *testing.T) {
	body := func(s string) string { return "def slugify_title(text, max_length=40):\n" + s }
	for name, c := range map[string]struct{ code, why string }{
		"old name":              {strings.Replace(goodEdit, "slugify_title", "slugify", 1), "defines no function slugify_title"},
		"a method":              {"class A:\n    def slugify_title(text, max_length=40):\n        return text[:max_length]\n", "defines no function"},
		"only in a string":      {"'''\n" + goodEdit + "'''\n", "defines no function"},
		"only in a comment":     {"# def slugify_title(text, max_length=40): return text[:max_length]\n", "defines no function"},
		"a lambda":              {"slugify_title = lambda text, max_length=40: text[:max_length]\n", "defines no function"},
		"defined again":         {goodEdit + "\ndef slugify_title(text):\n    return text\n", "its parameters are (text)"},
		"no new parameter":      {"def slugify_title(text):\n    return text[:40]\n", "its parameters are (text), not (text, max_length)"},
		"other name of it":      {"def slugify_title(text, limit=40):\n    return text[:limit]\n", "its parameters are (text, limit)"},
		"other order":           {"def slugify_title(max_length=40, text=''):\n    return text[:max_length]\n", "its parameters are (max_length, text)"},
		"a parameter more":      {"def slugify_title(text, max_length=40, sep='-'):\n    return text[:max_length]\n", "its parameters are"},
		"by name only":          {"def slugify_title(text, *, max_length=40):\n    return text[:max_length]\n", "max_length is not a plain one"},
		"by position only":      {"def slugify_title(text, /, max_length=40):\n    return text[:max_length]\n", "text is not a plain one"},
		"rest":                  {"def slugify_title(text, max_length=40, **kw):\n    return text[:max_length]\n", "kw is not a plain one"},
		"no default":            {"def slugify_title(text, max_length):\n    return text[:max_length]\n", "0 parameters have a default"},
		"two defaults":          {"def slugify_title(text='', max_length=40):\n    return text[:max_length]\n", "2 parameters have a default"},
		"other default":         {"def slugify_title(text, max_length=30):\n    return text[:max_length]\n", "not the integer literal 40"},
		"default a float":       {"def slugify_title(text, max_length=40.0):\n    return text[:max_length]\n", "not the integer literal 40"},
		"default a text":        {"def slugify_title(text, max_length='40'):\n    return text[:max_length]\n", "not the integer literal 40"},
		"default a sum":         {"def slugify_title(text, max_length=20 + 20):\n    return text[:max_length]\n", "not the integer literal 40"},
		"default a name":        {"def slugify_title(text, max_length=LIMIT):\n    return text[:max_length]\n", "not the integer literal 40"},
		"a coroutine":           {"async " + "def slugify_title(text, max_length=40):\n    return text[:max_length]\n", "a coroutine"},
		"unused":                {body("    return text[:40]\n"), "does not read the parameter max_length"},
		"in a docstring only":   {body("    \"\"\"Cuts at max_length.\"\"\"\n    return text[:40]\n"), "does not read"},
		"in a comment only":     {body("    return text[:40]  # max_length\n"), "does not read"},
		"in braces of a string": {body("    return 'text[:{max_length}]'\n"), "does not read"},
		"in doubled braces":     {body("    return f'{{max_length}}{text}'\n"), "does not read"},
		"set only":              {body("    max_length = 40\n    return text[:40]\n"), "does not read"},
		"set before":            {body("    max_length = 40\n    return text[:max_length]\n"), "does not read"},
		"set on both paths":     {body("    if text:\n        max_length = 1\n    else:\n        max_length = 2\n    return text[:max_length]\n"), "does not read"},
		"added to only":         {body("    max_length += 1\n    return text\n"), "does not read"},
		"hidden by a lambda":    {body("    return (lambda max_length: text[:max_length])(40)\n"), "does not read"},
		"hidden by a loop":      {body("    return [max_length for max_length in (1, 2)]\n"), "does not read"},
		"hidden by a function":  {body("    def cut(max_length):\n        return text[:max_length]\n    return cut(40)\n"), "does not read"},
		"hidden by a variable":  {body("    def cut():\n        max_length = 3\n        return text[:max_length]\n    return cut()\n"), "does not read"},
		"hidden by a for":       {body("    for max_length in (1, 2):\n        print(max_length)\n    return text\n"), "does not read"},
		"an attribute":          {body("    return text.max_length\n"), "does not read"},
		"name of an argument":   {body("    return cut(text, max_length=40)\n"), "does not read"},
		"no Python":             {body("    return text[:max_length\n"), "the source is no Python: line"},
		"bad indentation":       {body("    x = 1\n  return text[:max_length]\n"), "no Python: line 3"},
		"of Python 2":           {body("    print text[:max_length]\n"), "no Python"},
		"elided":                {"def slugify_title(text, max_length=40):\n    ... existing code ...\n    return text[:max_length]\n", "no Python: line 2"},
		"empty":                 {"", "defines no function"},
	} {
		t.Run(name, func(t *testing.T) {
			wantVerdict(t, editVerdict(t, fencedCode(c.code)), exchange.VerdictFail, c.why)
		})
	}
}

func TestCodeEditOfOtherAnswers(t *testing.T) {
	wantVerdict(t, editVerdict(t, reply{content: " ", finish: "stop"}), exchange.VerdictFail, "content channel is empty")
	wantVerdict(t, editVerdict(t, reply{content: "```\nx = 1\n```\n```python\n" + goodEdit + "```"}), exchange.VerdictFail, "defines no function")
	wantVerdict(t, editVerdict(t, reply{content: "I would write:\n" + goodEdit}), exchange.VerdictFail, "no Python: line 1")
	wantVerdict(t, editVerdict(t, reply{content: "```python\n" + goodEdit}), exchange.VerdictFail, "no Python: line 1")
	wantVerdict(t, editVerdict(t, fencedCode("x = "+strings.Repeat("not ", 5000)+"1\n"+goodEdit)), exchange.VerdictIncomparable, "nested too deeply")
	wantVerdict(t, editVerdict(t, reply{status: 500, body: `{"error":{"message":"x"}}`}), exchange.VerdictNotRun, "turn 2: ")
	wantVerdict(t, (dialog{scenario: "code_edit"}).verdict(t, fencedCode("def slugify(text): return text\n")), exchange.VerdictPartial, "1/2 turns")
}

func TestCodeEditParams(t *testing.T) {
	x := fencedCode("def f(a, b=0):\n    return b\n").exchange(withTools(""), false)
	wantVerdict(t, judged(t, check("code_edit", `{"function":"f","argument":"a","parameter":"b","default":0,"turns":1}`), x), exchange.VerdictOK, "")
	for _, params := range []string{`{"turns":-1}`, `{"func":"f"}`} {
		if err := Validate(check("code_edit", params)); err == nil {
			t.Errorf("parameters %s are taken", params)
		}
	}
}
