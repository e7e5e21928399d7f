// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"

	"github.com/platform-ai/platform/test/console/scene"
	"github.com/platform-ai/platform/test/kit"
)

const patch = `diff --git a/primes.sh b/primes.sh
--- a/primes.sh
+++ b/primes.sh
@@ -1,4 +1,4 @@
 count=0
-n=2
+n=1
--- a line that begins with two signs
++++ and another one
 while true; do
`

// reading makes two runs that say nearly the same, and one of which the texts try to be more.
func (f *filled) reading() {
	f.t.Helper()
	object := func(v any) string { return string(quoted(f.t, v)) }
	for _, run := range []struct {
		name, limit, output string
		more                []scene.Step
	}{
		{"first-run", "10", "2\n3\n5\n7", nil},
		{"second-run", "20", "2\n3\n5\n7\n11", []scene.Step{{Tool: "file_read", Arguments: object(map[string]any{"path": "notes.md"}), Result: object(map[string]any{"success": true, "data": map[string]string{"content": "# Notes\n\nNone yet."}})}}},
	} {
		f.Task(run.name)
		steps := append([]scene.Step{{
			Text: "I will write the program first.", Tool: "file_write",
			Arguments: object(map[string]any{"path": "primes.sh", "content": "#!/bin/bash\ncount=0\nlimit=" + run.limit + "\nwhile [ $count -lt $limit ]; do\n  next\ndone\n", "mode": json.Number("12345678901234567890")}),
			Result:    object(map[string]any{"success": true, "data": map[string]any{"bytes": 60, "tags": []string{"a", "b"}}}),
		}}, run.more...)
		steps = append(steps,
			scene.Step{Text: "Now I run it.", Tool: "code_exec", Arguments: object(map[string]any{"language": "bash", "code": "bash primes.sh", "timeout": 20}), Result: object(map[string]any{"success": true, "data": map[string]any{"exit_code": 0, "output": run.output}})},
			scene.Step{Tool: "code_exec", Arguments: object(map[string]any{"code": "git diff"}), Result: patch},
			scene.Step{Tool: "draw", Arguments: `{}`, Result: object(map[string]any{"content": []any{map[string]string{"type": "image", "mimeType": "image/png", "data": drawing(f.t)}, map[string]string{"type": "text", "text": "A drawing."}}})},
			scene.Step{Text: "It printed the **first** " + run.limit + " primes."},
		)
		f.Converse(run.name, 1, "Write a program that prints the first "+run.limit+" primes, and run it.", steps...)
	}
	svg := "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg" onload="window.pwned=1"/>`))
	f.Task("hostile-run")
	var steps []scene.Step
	for i, text := range append([]string{svg, "data:image/png;base64," + base64.StdEncoding.EncodeToString([]byte("<script>")), huge(f.t)}, hostile...) {
		text = strings.ReplaceAll(text, "STEAL", "https://thief.example")
		name := fmt.Sprintf("tool%d", i)
		steps = append(steps, scene.Step{Text: text, Tool: name, Arguments: object(map[string]any{text[:min(len(text), 60)]: text, "data": svg[26:], "mimeType": "image/svg+xml"}), Result: text, Failed: i%3 == 0})
		steps = append(steps, scene.Step{Tool: name, Arguments: text, Result: patch + "@@ -1 +1 @@\n-" + strings.ReplaceAll(text, "\n", " ") + "\n+<img src=x onerror=window.pwned=1>\n"})
	}
	f.Converse("hostile-run", 1, hostile[0], steps...)
	f.Task("wordy-run")
	steps = nil
	for i := range 120 {
		steps = append(steps, scene.Step{Text: fmt.Sprintf("Step %d.", i), Tool: "look", Arguments: fmt.Sprintf(`{"at":%d,"why":%q}`, i, strings.Repeat("it is needed ", 20)), Result: "It is there."})
	}
	f.Converse("wordy-run", 1, "Look everywhere.", steps...)
}

// drawing returns a PNG in Base64.
func drawing(t testing.TB) string {
	t.Helper()
	m := image.NewRGBA(image.Rect(0, 0, 96, 64))
	for i := range m.Pix {
		m.Pix[i] = byte(i*i/96) | 0x80
	}
	var b bytes.Buffer
	if err := png.Encode(&b, m); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// huge returns an image that says it has 32,768 by 32,768 pixels, which would take gigabytes when it is drawn.
func huge(t testing.TB) string {
	t.Helper()
	raw, err := base64.StdEncoding.DecodeString(drawing(t))
	if err != nil {
		t.Fatal(err)
	}
	copy(raw[16:24], []byte{0, 0, 0x80, 0, 0, 0, 0x80, 0})
	return "data:image/png;base64," + base64.StdEncoding.EncodeToString(raw)
}

// What was said and done is read in the console: in forms, as the model saw it, and beside another run.
func TestReading(t *testing.T) {
	t.Parallel()
	kit.Needs(t, kit.NPM, kit.Browser)
	f := fill(t)
	f.reading()
	f.drive("reading.mjs", 10, "TOKEN="+f.token("ann", "platform-operator"), "VIEWER="+f.token("vic", "platform-viewer"), "SHOTS="+pictures(t))
}
