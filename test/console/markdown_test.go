// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/platform-ai/platform/test/kit"
)

// shownAs are texts, and what the page makes of them: elements, with the attributes that matter.
var shownAs = map[string]string{
	"one\ntwo\n\nthree":                "<p>one\ntwo</p><p>three</p>",
	"# Title #\ntext":                  "<p class=heading><strong>Title</strong></p><p>text</p>",
	"---":                              "<hr>",
	"> quoted\n> > twice":              "<blockquote><p>quoted</p><blockquote><p>twice</p></blockquote></blockquote>",
	"- a\n- b\n  - c\n    more\n  - d": "<ul><li><p>a</p></li><li><p>b</p><ul><li><p>c\nmore</p></li><li><p>d</p></li></ul></li></ul>",
	"3. a\n4. b\n\n   c":               "<ol start=3><li><p>a</p></li><li><p>b</p><p>c</p></li></ol>",
	"- a\n\ntext":                      "<ul><li><p>a</p></li></ul><p>text</p>",
	"```go\na := `x`\n\n# no title\n```\nafter": "<pre><code>a := `x`\n\n# no title</code></pre><p>after</p>",
	"~~~~\n~~~\n~~~~":                           "<pre><code>~~~</code></pre>",
	"```\nnever closed":                         "<pre><code>never closed</code></pre>",
	"- a\n  ```\n  b\n  ```":                    "<ul><li><p>a</p><pre><code>b</code></pre></li></ul>",
	"| a | b |\n|---|--:|\n| `1` | x \\| y |\n": "<div><table><thead><tr><th>a</th><th class=number>b</th></tr></thead><tbody><tr><td><code>1</code></td><td class=number>x | y</td></tr></tbody></table></div>",
	"| a | b |\n|---|\n":                        "<p>| a | b |\n|---|</p>",
	"**bold *so* end** and *so* and _so_":       "<p><strong>bold <em>so</em> end</strong> and <em>so</em> and <em>so</em></p>",
	"**_both_** snake_case_name 2*3*4":          "<p><strong><em>both</em></strong> snake_case_name 2<em>3</em>4</p>",
	"`**code**`":                                "<p><code>**code**</code></p>",
	"[a](https://b.example/c \"d\")":            "<p><a href=https://b.example/c rel=noopener noreferrer nofollow>a <span class=where>(b.example)</span></a></p>",
	"see https://b.example/c.":                  "<p>see <a href=https://b.example/c. rel=noopener noreferrer nofollow>https://b.example/c.</a></p>",
	"[a](javascript:alert) [b](//c) [d](/e)":    "<p>a (javascript:alert) b (//c) d (/e)</p>",
	"[a](https://user:pw@b.example/)":           "<p>a (https://user:pw@b.example/)</p>",
	"![a](https://b.example/c.png)":             "<p><span class=muted>[image: a, not loaded: https://b.example/c.png]</span></p>",
	"<b>x</b> <!-- y --> &amp;":                 "<p><b>x</b> <!-- y --> &amp;</p>", // text, not elements
	"a\u202eb":                                  "<p>a⟨U+202E⟩b</p>",
}

// written writes elements as text. What is between them is not escaped, so that expectations can be read.
const written = `const { Markdown } = await import(process.argv[1]);
const write = (n) => {
  if (n === null || n === undefined || n === false) return '';
  if (Array.isArray(n)) return n.map(write).join('');
  if (typeof n !== 'object') return String(n);
  if (typeof n.type === 'function') return n.type === Markdown || n.type.length ? write(n.type(n.props)) : write(n.props.children);
  const { children, ...props } = n.props;
  const kept = ['class', 'start', 'href', 'rel'].filter((k) => props[k] && props[k] !== 'scroll-x').map((k) => ' ' + k + '=' + props[k]).join('');
  return '<' + n.type + kept + '>' + (n.type === 'hr' ? '' : write(children) + '</' + n.type + '>');
};
const out = {};
for (const text of JSON.parse(process.argv[2])) out[text] = write(Markdown({ text }).props.children);
console.log(JSON.stringify(out));`

// Markdown becomes the elements that its writer meant, and what is no Markdown of the page's stays text.
func TestMarkdown(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM)
	out := filepath.Join(t.TempDir(), "markdown.mjs")
	build := exec.CommandContext(t.Context(), "go", "tool", "-modfile=../../../hack/tools/go.mod", "esbuild", "src/ui/markdown.tsx", "--bundle", "--format=esm",
		"--jsx=automatic", "--jsx-import-source=preact", "--alias:preact=./vendor/preact.mjs", "--alias:preact/jsx-runtime=./vendor/jsx-runtime.mjs",
		"--outfile="+out, "--log-level=warning")
	build.Dir = root + "/pkg/console/web"
	if said, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	var texts []string
	for text := range shownAs {
		texts = append(texts, text)
	}
	said, err := exec.CommandContext(t.Context(), "node", "--input-type=module", "-e", written, out, string(quoted(t, texts))).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, said)
	}
	got := map[string]string{}
	if err := json.Unmarshal(said, &got); err != nil {
		t.Fatal(err)
	}
	for text, want := range shownAs {
		if got[text] != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got[text], want)
		}
	}
}
