// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

// Changes in the unified format, and those of a run, which "git diff --binary --full-index" would write, by file. Their names and lines
// are anybody's.

export interface FileChange {
  name: string;
  what: 'new' | 'deleted' | 'changed';
  mode: string; // how its mode changed; empty if it did not
  added: number; // lines
  removed: number;
  binary: boolean;
  text: string; // its hunks
}

// hunk matches the line that begins a hunk, with the number of its lines before and after.
export const hunk = /^@@ -\d+(?:,(\d+))? \+\d+(?:,(\d+))? @@/;

// isPatch reports whether a text is changes in the unified format.
export function isPatch(text: string): boolean {
  return /^(?:--- .*\n\+\+\+ .*\n)@@ -\d/m.test(text);
}

// filesOf returns the files of a diff. What looks like a header within a hunk is a line of it.
export function filesOf(diff: string): FileChange[] {
  const files: FileChange[] = [];
  let file: FileChange | undefined;
  let hunks: string[] = [];
  let [less, more] = [0, 0]; // lines that the hunk still has of each side
  const end = () => {
    if (file) file.text = hunks.join('\n');
    hunks = [];
  };
  for (const line of diff.split('\n')) {
    const begins = hunk.exec(line);
    if (file && (less > 0 || more > 0)) {
      if (line.startsWith('+')) (file.added++, more--);
      else if (line.startsWith('-')) (file.removed++, less--);
      else if (!line.startsWith('\\')) (less--, more--);
      hunks.push(line);
    } else if (line.startsWith('diff --git ')) {
      end();
      files.push((file = { name: nameOf(line), what: 'changed', mode: '', added: 0, removed: 0, binary: false, text: '' }));
    } else if (!file) continue;
    else if (begins) {
      [less, more] = [Number(begins[1] ?? 1), Number(begins[2] ?? 1)];
      hunks.push(line);
    } else if (line.startsWith('\\')) hunks.push(line); // there is no line end after the last line
    else if (line.startsWith('new file mode ')) file.what = 'new';
    else if (line.startsWith('deleted file mode ')) file.what = 'deleted';
    else if (line.startsWith('old mode ')) file.mode = line.slice(9);
    else if (line.startsWith('new mode ')) file.mode += ` → ${line.slice(9)}`;
    else if (line === 'GIT binary patch') file.binary = true;
  }
  end();
  return files;
}

// nameOf returns the name in a header, which has it twice, after a/ and b/ and in quotes if it has special characters.
function nameOf(header: string): string {
  const names = header.slice('diff --git '.length);
  const twice = names.slice(0, (names.length - 1) / 2);
  return twice.startsWith('"') ? unquoted(twice.slice(3, -1)) : twice.slice(2);
}

// unquoted returns a quoted name as people know it. Line ends and tabs stay as they are quoted.
function unquoted(quoted: string): string {
  const bytes = (octals: string) => new TextDecoder().decode(Uint8Array.from(octals.split('\\').slice(1), (o) => parseInt(o, 8)));
  return quoted.replace(/((?:\\[0-7]{3})+)|\\(["\\])/g, (_, octals: string | undefined, plain: string) => (octals ? bytes(octals) : plain));
}
