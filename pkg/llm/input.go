// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package llm

const (
	// requestTokens and messageTokens are about what vendors add to a request and to each message, at most.
	requestTokens, messageTokens = 1000, 32
	// bytesPerToken is about how many bytes of a text of people make one token.
	bytesPerToken = 4
	// ImageTokens is about what an image makes at most, whose pixels count and not its bytes.
	ImageTokens = 50_000
	// SearchTokens is about what the searches of the web bring that a vendor makes for one request. No vendor states a limit.
	SearchTokens = 64_000
	// WindowTokens is the largest context of the models that are known (1,047,576 tokens). No input is larger, so it bounds an
	// input of which a request has only the name.
	WindowTokens = 1 << 20
)

// MaxInput returns how many tokens the input of the request may have at most. No tokenizer makes more tokens than there
// are bytes; texts of people have about a quarter of that. Budgets reserve it until the vendor reports the tokens.
func (r *Request) MaxInput() int64 {
	n := requestTokens + len(r.Format)
	for i := range r.Messages {
		m := &r.Messages[i]
		n += messageTokens + len(m.Text) + ImageTokens*len(m.Images())
		if m.Opaque != nil {
			n += len(m.Opaque.Data)
		}
		for _, c := range m.ToolCalls {
			n += messageTokens + len(c.Name) + len(c.Arguments)
		}
	}
	for i := range r.Tools {
		d := &r.Tools[i]
		n += messageTokens + len(d.Name) + len(d.Description) + len(d.Parameters)
	}
	return int64(n)
}

// LikelyInput returns about how many tokens an input has that MaxInput bounds by most. It is what limits reserve for an
// input that is unlike those before it.
func LikelyInput(most int64) int64 { return max(0, most-requestTokens) / bytesPerToken }

// UsualImage is about how many tokens an image of the size that vendors recommend makes.
const UsualImage = 1600

// TokensOf returns about how many tokens a text of so many bytes has.
func TokensOf(bytes int64) int64 { return bytes / bytesPerToken }

// BytesOf returns about how many bytes so many tokens have.
func BytesOf(tokens int64) int64 { return tokens * bytesPerToken }

// MaxInputOf returns the same for a request of that many bytes in the form of a vendor.
func MaxInputOf(bytes int) int64 { return int64(requestTokens + bytes) }
