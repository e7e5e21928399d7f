// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/platform-ai/platform/pkg/gateway/protocol"
)

// wide is a character of four bytes.
const wide = "𝕏"

// atOnce is how often D3 sends a delivery at the same time.
const atOnce = 16

// deliveries are the checks of what is posted.
func deliveries() []Check {
	return []Check{
		{Number: "D1", Required: "A delivery is posted, and answered with delivered.", Advice: "See whether the adapter may write where the kit posts.", run: delivered},
		{Number: "D2", Required: "A repeated delivery gets the first answer.", Advice: "Keep the outcome by idempotencyId before answering.", needs: []string{"D1"}, run: repeated},
		{Number: "D3", Required: "A delivery that arrives 16 times at once is posted once, and all get the same answer.", Advice: "Hold a lock for the idempotencyId from the look at what is remembered until the outcome is.", needs: []string{"D2"}, run: parallel},
		{Number: "D4", Required: "A repeated delivery with another text gets the first answer, and nothing is posted.", Advice: "Compare the idempotencyId and nothing else.", needs: []string{"D2"}, run: otherText},
		{Number: "D5", Required: "A text of 65,536 bytes in characters of four bytes is posted.", Advice: "Accept a body of 1 MiB, and divide what is too long for the chat system.", needs: []string{"D2"}, run: wideText},
		{Number: "D6", Required: "All members may be as long as their limits.", Advice: "Limit no member below what docs/gateway-v1.md says.", needs: []string{"D2"}, run: longMembers},
		{Number: "D7", Required: "Two deliveries with the same text are two posts.", Advice: "Recognise repetitions by idempotencyId and not by what they say.", needs: []string{"D1"}, run: twins},
		{Number: "K1", Required: "Interim texts are posted by an adapter with interimMessages, and refused by others.", Advice: "Name the capability if the kind interim is posted; otherwise answer nonRetryableError.", needs: []string{"H2", "D1"}, run: interim},
	}
}

func delivered(ctx context.Context, p *probe) error {
	d, marker := p.delivery("the first delivery")
	answer, err := p.delivered(ctx, d)
	if err != nil {
		return err
	}
	p.first, p.answer = d, *answer
	return p.posted(ctx, marker, 1, 1)
}

func repeated(ctx context.Context, p *probe) error {
	for range 3 {
		if err := p.again(ctx, p.first, p.answer); err != nil {
			return err
		}
	}
	return p.posted(ctx, marker(p.first), 1, 1)
}

func parallel(ctx context.Context, p *probe) error {
	d, mark := p.delivery("sixteen at once")
	answers, errs := make([]protocol.Answer, atOnce), make([]error, atOnce)
	var all sync.WaitGroup
	for i := range atOnce {
		all.Go(func() {
			answer, err := p.delivered(ctx, d)
			if err == nil {
				answers[i] = *answer
			}
			errs[i] = err
		})
	}
	all.Wait()
	for i, err := range errs {
		if err == nil {
			err = same(answers[0], answers[i])
		}
		if err != nil {
			return err
		}
	}
	return p.posted(ctx, mark, 1, 1)
}

func otherText(ctx context.Context, p *probe) error {
	other, mark := p.delivery("another text under an id that is known")
	d := p.first
	d.Text = other.Text
	if err := p.again(ctx, d, p.answer); err != nil {
		return err
	}
	return p.posted(ctx, mark, 0, 0)
}

func wideText(ctx context.Context, p *probe) error {
	d, mark := p.delivery("a long text ")
	d.Text += strings.Repeat("x", (protocol.MaxText-len(d.Text))%len(wide))
	d.Text += strings.Repeat(wide, (protocol.MaxText-len(d.Text))/len(wide))
	answer, err := p.delivered(ctx, d)
	if err != nil {
		return err
	}
	if err := p.again(ctx, d, *answer); err != nil {
		return err
	}
	return p.posted(ctx, mark, 1, 1) // in the first part
}

func longMembers(ctx context.Context, p *probe) error {
	d, mark := p.delivery("long members")
	fill := func(s string, most int) string { return s + strings.Repeat("-", most-len(s)) }
	d.IdempotencyID, d.DeliveryID = fill(d.IdempotencyID, protocol.MaxIdempotencyID), fill(d.DeliveryID, protocol.MaxID)
	d.OriginatingEventID, d.SessionRef = fill(d.OriginatingEventID, protocol.MaxID), fill(d.SessionRef, protocol.MaxID)
	d.TaskRef = protocol.TaskRef{Namespace: fill("conformance", 63), Name: fill(d.TaskRef.Name, 253)}
	d.Metadata = map[string]string{protocol.MetadataCreatedAt: "2026-03-01T10:00:20Z", protocol.MetadataLate: "true"}
	for i := len(d.Metadata); i < protocol.MaxDeliveryMetadata; i++ {
		d.Metadata[fill(fmt.Sprintf("conformance/%d", i), 128)] = strings.Repeat("<", 1024) // which escapes may make long
	}
	answer, err := p.delivered(ctx, d)
	if err != nil {
		return err
	}
	if err := p.again(ctx, d, *answer); err != nil {
		return err
	}
	other, _ := p.delivery("the same beginning of an id, and another end")
	other.IdempotencyID = d.IdempotencyID[:len(d.IdempotencyID)-1] + "x"
	second, err := p.delivered(ctx, other)
	if err != nil {
		return err
	}
	if answer.ProviderMessageID != "" && answer.ProviderMessageID == second.ProviderMessageID {
		return errors.New("two ids of 128 bytes that differ at their end are taken for one")
	}
	return errors.Join(p.posted(ctx, mark, 1, 1), p.posted(ctx, marker(other), 1, 1))
}

func twins(ctx context.Context, p *probe) error {
	d, mark := p.delivery("twins")
	twin, _ := p.delivery("")
	twin.Text = d.Text
	first, err := p.delivered(ctx, d)
	if err != nil {
		return err
	}
	second, err := p.delivered(ctx, twin)
	if err != nil {
		return err
	}
	if first.ProviderMessageID != "" && first.ProviderMessageID == second.ProviderMessageID {
		return fmt.Errorf("both have the providerMessageId %q", first.ProviderMessageID)
	}
	return p.posted(ctx, mark, 2, 2)
}

func interim(ctx context.Context, p *probe) error {
	d, mark := p.delivery("an interim text")
	d.Kind = protocol.KindInterim
	if p.caps.Capabilities.InterimMessages {
		if _, err := p.delivered(ctx, d); err != nil {
			return err
		}
		final, finalMark := p.delivery("the answer after an interim text")
		final.OriginatingEventID = d.OriginatingEventID
		if _, err := p.delivered(ctx, final); err != nil {
			return err
		}
		return errors.Join(p.posted(ctx, mark, 1, 1), p.posted(ctx, finalMark, 1, 1))
	}
	answer, final, err := p.once(ctx, d)
	if err == nil && answer.Status == protocol.Delivered {
		return errors.New("it was posted, and the capability is not named")
	}
	if err != nil && !final {
		return fmt.Errorf("it was refused in a way that is repeated: %w", err)
	}
	return p.posted(ctx, mark, 0, 0)
}

// failures are the checks of what happens when clients, or the adapter itself, break off.
func failures() []Check {
	return []Check{
		{Number: "S1", Required: "Clients that do not finish their body hold up nobody.", Advice: "Read each body before anything is locked, and limit how long that takes.", needs: []string{"D1"}, run: slowClients},
		{Number: "S2", Required: "A delivery whose client hangs up is posted once, and the repetition gets its outcome.", Advice: "Do not end the posting with the request.", needs: []string{"D2"}, run: hungUp},
		{Number: "R1", Required: "After a restart a repeated delivery gets the first answer.", Advice: "Write the outcome to disk, synced, before answering.", needs: []string{"D2"}, run: restarted},
		{Number: "R2", Required: "A delivery that a restart interrupts gets one final outcome, and is posted at most once.", Advice: "Write started to disk before sending; if there is no outcome afterwards and the chat system cannot tell, answer nonRetryableError.", needs: []string{"R1"}, run: interrupted},
	}
}

// slow is how many clients S1 has.
const slow = 8

// slowClient has sent half of a delivery.
type slowClient struct {
	delivery protocol.Delivery
	out      *io.PipeWriter
	rest     []byte
	ended    chan struct{}
	err      error // after ended
}

// slowly sends half of a delivery.
func slowly(ctx context.Context, p *probe) (*slowClient, error) {
	d, _ := p.delivery("from a slow client")
	raw, err := json.Marshal(d)
	if err != nil {
		return nil, fmt.Errorf("encode a delivery: %w", err)
	}
	in, out := io.Pipe()
	c := &slowClient{delivery: d, out: out, rest: raw[len(raw)/2:], ended: make(chan struct{})}
	r := body(nil)
	r.body, r.length = in, int64(len(raw))
	go func() {
		defer close(c.ended)
		res, err := p.ask(ctx, r)
		_ = in.CloseWithError(io.ErrClosedPipe) // nobody reads more
		if err == nil && res.code != http.StatusOK {
			err = fmt.Errorf("it was answered with %d: %s", res.code, brief(res.body))
		}
		c.err = err
	}()
	if _, err := out.Write(raw[:len(raw)/2]); err != nil {
		<-c.ended
		return nil, fmt.Errorf("half of a body could not be sent: %w", errors.Join(err, c.err))
	}
	return c, nil
}

// finish sends the other half and waits for the answer.
func (c *slowClient) finish() error {
	_, err := c.out.Write(c.rest)
	_ = c.out.Close() // it was all
	<-c.ended
	return errors.Join(err, c.err)
}

// abandon ends the client.
func (c *slowClient) abandon() {
	_ = c.out.CloseWithError(io.ErrClosedPipe) // its request fails
	<-c.ended
}

func slowClients(ctx context.Context, p *probe) error {
	var last *slowClient
	for range slow {
		c, err := slowly(ctx, p)
		if err != nil {
			return err
		}
		defer c.abandon()
		last = c
	}
	d, _ := p.delivery("beside slow clients")
	if _, err := p.delivered(ctx, d); err != nil {
		return fmt.Errorf("while %d clients had not finished their bodies: %w", slow, err)
	}
	if err := last.finish(); err != nil {
		return fmt.Errorf("a slow client that sent the rest of its body: %w", err)
	}
	return p.posted(ctx, marker(last.delivery), 1, 1)
}

func hungUp(ctx context.Context, p *probe) error {
	d, mark := p.delivery("nobody waits for the answer")
	sent := make(chan struct{})
	done, abandon := p.begin(ctx, d, func() { close(sent) })
	<-sent
	abandon()
	<-done
	answer, err := p.delivered(ctx, d)
	if err != nil {
		return err
	}
	if err := p.again(ctx, d, *answer); err != nil {
		return err
	}
	return p.posted(ctx, mark, 1, 1)
}

// noRestart is why checks are skipped without a restart.
const noRestart = "no way to restart the adapter was given"

func restarted(ctx context.Context, p *probe) error {
	if p.o.Restart == nil {
		return &skip{noRestart}
	}
	if err := p.restart(ctx); err != nil {
		return err
	}
	if err := p.again(ctx, p.first, p.answer); err != nil {
		return err
	}
	if err := p.posted(ctx, marker(p.first), 1, 1); err != nil {
		return err
	}
	d, mark := p.delivery("after a restart")
	if _, err := p.delivered(ctx, d); err != nil {
		return err
	}
	return p.posted(ctx, mark, 1, 1)
}

func interrupted(ctx context.Context, p *probe) error {
	if p.o.Restart == nil {
		return &skip{noRestart}
	}
	d, mark := p.delivery("a restart interrupts this\n")
	d.Text += strings.Repeat("line after line\n", (protocol.MaxText-len(d.Text))/16)
	sent := make(chan struct{})
	done, abandon := p.begin(ctx, d, func() { close(sent) })
	defer abandon()
	<-sent
	if err := p.restart(ctx); err != nil {
		return err
	}
	abandon()
	<-done
	answer, err := p.deliver(ctx, d)
	if err != nil {
		return err
	}
	if err := p.again(ctx, d, *answer); err != nil {
		return err
	}
	least := 0
	if answer.Status == protocol.Delivered {
		least = 1
	}
	return p.posted(ctx, mark, least, 1)
}

// answers are the checks of all answers together.
func answers() []Check {
	seen := func(what func(p *probe) string) func(context.Context, *probe) error {
		return func(_ context.Context, p *probe) error {
			p.mu.Lock()
			defer p.mu.Unlock()
			if what := what(p); what != "" {
				return errors.New(what)
			}
			return nil
		}
	}
	return []Check{
		{Number: "T1", Required: "No answer is a redirect.", Advice: "Give the gateway the address at which the adapter answers itself.", run: seen(func(p *probe) string { return p.redirected })},
		{Number: "T2", Required: "No answer has more than 65,536 bytes.", Advice: "Cut messages of errors.", run: seen(func(p *probe) string { return p.large })},
		{Number: "T3", Required: "No answer has the token in it.", Advice: "Do not repeat what was sent.", run: seen(func(p *probe) string { return p.leaked })},
	}
}
