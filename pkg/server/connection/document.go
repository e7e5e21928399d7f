// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package connection

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/platform-ai/platform/pkg/apis/core/v1alpha1"
	"github.com/platform-ai/platform/pkg/connector"
	"github.com/platform-ai/platform/pkg/storage/custody"
	"github.com/platform-ai/platform/pkg/storage/engine"
	"github.com/platform-ai/platform/pkg/storage/object"
)

// document is what custody has of a connection. It is written as JSON, so members are added and never renamed.
type document struct {
	// Namespace and Name are those of the connection, which the callback finds by its UID alone.
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	// Begun is the number of the newest consent that was begun.
	Begun int64 `json:"begun,omitempty"`
	// Sequence is that of the newest committed grant.
	Sequence int64 `json:"sequence,omitempty"`
	// Closing is set when the person has disconnected: nothing is begun, parked or committed any more.
	Closing bool `json:"closing,omitempty"`
	// Pending is the consent that a person has been asked for.
	Pending *pending `json:"pending,omitempty"`
	// Parked are tokens that nobody has claimed.
	Parked *parked `json:"parked,omitempty"`
	// Grant is what the connection has, and Superseded what it had, the newest last.
	Grant      *grant  `json:"grant,omitempty"`
	Superseded []grant `json:"superseded,omitempty"`
}

// ask is what a person is asked for, and what must still hold when the person comes back.
type ask struct {
	Number int64 `json:"number"`
	// Owner is the digest of the subject of the connection.
	Owner       string                  `json:"owner"`
	Provider    string                  `json:"provider"`
	ProviderUID types.UID               `json:"providerUID"`
	Authority   string                  `json:"authority"`
	Mode        v1alpha1.ConnectionMode `json:"mode"`
	Scopes      []string                `json:"scopes,omitempty"`
	Client      client                  `json:"client"`
}

// client is the OAuth client that the tokens belong to.
type client struct {
	ID             string                                 `json:"id"`
	Secret         v1alpha1.KeyReference                  `json:"secret"`
	Authentication v1alpha1.ConnectorClientAuthentication `json:"authentication"`
	TokenURL       string                                 `json:"tokenURL"`
	RevocationURL  string                                 `json:"revocationURL,omitempty"`
}

// pending is a consent that was begun.
type pending struct {
	ask
	// Nonce is the digest of the nonce in the state.
	Nonce []byte `json:"nonce"`
	// Verifier is that of RFC 7636; empty without it.
	Verifier string    `json:"verifier,omitempty"`
	Expires  time.Time `json:"expires"`
}

// grant is what a provider gave.
type grant struct {
	ask
	Sequence int64 `json:"sequence,omitempty"`
	// Access, Refresh and Type are as the provider said.
	Access  string `json:"access"`
	Refresh string `json:"refresh,omitempty"`
	Type    string `json:"type,omitempty"`
	// Granted are the scopes, and Expires is when the access token ends; zero if that is not known.
	Granted []string  `json:"granted,omitempty"`
	Expires time.Time `json:"expires,omitzero"`
}

// parked are tokens that wait for the owner of the connection.
type parked struct {
	grant
	// Completion is the digest of the nonce in the completion token.
	Completion []byte    `json:"completion"`
	Until      time.Time `json:"until"`
}

// asked returns what a person is asked for with a connection and its provider as they are.
func asked(c *v1alpha1.Connection, p *v1alpha1.ConnectorProvider) ask {
	return ask{
		Owner: connector.SubjectDigest(c.Spec.Subject.Issuer, c.Spec.Subject.Subject), Provider: p.Name, ProviderUID: p.UID, Authority: connector.AuthorityDigest(p),
		Mode: c.Spec.Mode, Scopes: connector.Required(p, c.Spec.Mode),
		Client: clientOf(p),
	}
}

// clientOf returns the client of a provider as it is.
func clientOf(p *v1alpha1.ConnectorProvider) client {
	return client{
		ID: p.Spec.OAuth.ClientID, Secret: p.Spec.OAuth.ClientSecretRef, Authentication: p.Spec.OAuth.ClientAuthentication,
		TokenURL: p.Spec.OAuth.TokenURL, RevocationURL: p.Spec.OAuth.RevocationURL,
	}
}

// Errors of changes of a document.
var (
	// errGone says that the person has disconnected.
	errGone = errors.New("the connection was disconnected")
	// errBusy says that others changed the document again and again.
	errBusy = errors.New("the connection is being changed by others; try again")
)

// maxTries is how often a change that others were faster with is tried.
const maxTries = 16

// vault keeps the documents.
type vault struct{ *custody.Store }

// load returns the document of a connection and its version; an empty one if there is none yet.
func (v vault) load(uid types.UID) (*document, int64, error) {
	row, err := v.Load(uid)
	if err != nil {
		return nil, 0, err
	}
	defer clear(row.Data)
	d := &document{}
	if row.Gone {
		return nil, row.Version, errGone
	}
	if row.Version == 0 {
		return d, 0, nil
	}
	if err := json.Unmarshal(row.Data, d); err != nil {
		return nil, 0, errors.New("the custody of the connection cannot be read") // the error of the decoder may quote it
	}
	return d, row.Version, nil
}

// isConflict reports whether another change of a document, or of the connection that is committed with it, came first.
func isConflict(err error) bool {
	_, is := errors.AsType[*custody.ConflictError](err)
	return is || object.IsConflict(err)
}

// encode returns the document as custody keeps it.
func (d *document) encode() ([]byte, error) {
	data, err := json.Marshal(d)
	if err != nil {
		return nil, errors.New("the custody of the connection cannot be written")
	}
	return data, nil
}

// change changes the document of a connection. f may run several times, each time on the document as it is then, until nobody was faster;
// its error ends the change.
func (v vault) change(ctx context.Context, uid types.UID, f func(*document) error) error {
	for range maxTries {
		d, version, err := v.load(uid)
		if err != nil {
			return err
		}
		if d.Closing {
			return errGone
		}
		if err := f(d); err != nil {
			return err
		}
		if err := v.save(ctx, uid, version, d); !isConflict(err) {
			return err
		}
	}
	return errBusy
}

// save writes a document in place of a version.
func (v vault) save(ctx context.Context, uid types.UID, version int64, d *document) error {
	data, err := d.encode()
	if err != nil {
		return err
	}
	defer clear(data)
	_, err = v.Save(ctx, uid, version, data)
	if errors.Is(err, custody.ErrGone) {
		return errGone
	}
	return err
}

// stage prepares what save does.
func (v vault) stage(uid types.UID, version int64, d *document) (engine.Part, error) {
	data, err := d.encode()
	if err != nil {
		return nil, err
	}
	defer clear(data)
	return v.Stage(uid, version, data)
}

// close marks a document, so that nothing is begun, parked, committed or refreshed any more, and returns the grants to revoke. Parked tokens
// are not among them: whose they are is not known.
func (v vault) close(ctx context.Context, uid types.UID) ([]grant, error) {
	for range maxTries {
		d, version, err := v.load(uid)
		if err != nil {
			return nil, err
		}
		grants := d.Superseded
		if d.Grant.revocable() {
			grants = append(grants, *d.Grant)
		}
		if d.Closing || version == 0 {
			return grants, nil
		}
		d.Closing, d.Pending, d.Parked = true, nil, nil
		if err := v.save(ctx, uid, version, d); !isConflict(err) {
			return grants, err
		}
	}
	return nil, errBusy
}
