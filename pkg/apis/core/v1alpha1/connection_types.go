// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// Connection is the account of one person at a ConnectorProvider, as far as the person lets the platform use it. The person makes it, and
// the server says whose it is: the name and spec.subject follow from the verified identity of the caller. Its tokens are kept sealed by
// the server and are in no object. To delete it is to disconnect.
type Connection struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The server gives the name, so a create needs none.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec ConnectionSpec `json:"spec"`
	// status is what is observed, written by the server and its controllers.
	// +optional
	Status ConnectionStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConnectionList is a list of connections.
type ConnectionList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the connections.
	Items []Connection `json:"items"`
}

// ConnectionMode says what an account may be used for.
// +enum
// +k8s:enum
type ConnectionMode string

// Values of ConnectionMode.
const (
	// ConnectionReadOnly asks for the scopes for reading, and hides tools of class write.
	ConnectionReadOnly ConnectionMode = "readOnly"
	// ConnectionReadWrite asks for all scopes.
	ConnectionReadWrite ConnectionMode = "readWrite"
)

// ConnectionSpec says whose account it is, where, and what for.
type ConnectionSpec struct {
	// subject is the person. The server sets it.
	// +optional
	// +k8s:immutable
	Subject ConnectionSubject `json:"subject,omitempty"`
	// providerRef is the ConnectorProvider.
	// +required
	// +k8s:immutable
	ProviderRef LocalReference `json:"providerRef"`
	// mode is readOnly or readWrite.
	// +optional
	// +default="readOnly"
	// +k8s:optional
	Mode ConnectionMode `json:"mode,omitempty"`
}

// ConnectionSubject is a person, as a verified token names them.
type ConnectionSubject struct {
	// issuer is who says so: the issuer of the token.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Issuer string `json:"issuer,omitempty"`
	// subject is the person's name at the issuer.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=512
	Subject string `json:"subject,omitempty"`
}

// ConnectionState is the state of a connection.
// +enum
type ConnectionState string

// Values of ConnectionState.
const (
	// ConnectionPending waits for a consent of the person: the first, or a wider one.
	ConnectionPending ConnectionState = "Pending"
	// ConnectionReady has tokens.
	ConnectionReady ConnectionState = "Ready"
	// ConnectionExpired had an access token that ended, and nothing to refresh it with.
	ConnectionExpired ConnectionState = "Expired"
	// ConnectionRevoked had a grant that the provider does not honour any longer. Its tokens are gone.
	ConnectionRevoked ConnectionState = "Revoked"
	// ConnectionError has a provider that is missing or not accepted.
	ConnectionError ConnectionState = "Error"
)

// ConnectionStatus is what is observed of a connection. It never has material of a token.
type ConnectionStatus struct {
	// observedGeneration is the generation that the conditions ProviderResolved and ScopesGranted are about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// state sums up the conditions.
	// +optional
	State ConnectionState `json:"state,omitempty"`
	// grantedScopes are the scopes that were granted at the last consent, or at a refresh since.
	// +optional
	// +listType=atomic
	GrantedScopes []string `json:"grantedScopes,omitempty"`
	// linkedAt is when the last consent was committed.
	// +optional
	// +k8s:optional
	LinkedAt *metav1.Time `json:"linkedAt,omitempty"`
	// expiresAt is when the access token ends; unset if the provider does not say.
	// +optional
	// +k8s:optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// lastRefreshTime is when the access token was last refreshed.
	// +optional
	// +k8s:optional
	LastRefreshTime *metav1.Time `json:"lastRefreshTime,omitempty"`
	// grantSequence is the number of the committed consent. It rises with each and never repeats.
	// +optional
	GrantSequence int64 `json:"grantSequence,omitempty"`
	// consent is what the committed consent was given for. If the provider changes, another consent is needed.
	// +optional
	// +k8s:optional
	Consent *ConnectionConsent `json:"consent,omitempty"`
	// conditions are the conditions of the object: ProviderResolved, ScopesGranted, Ready.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}

// ConnectionConsent is what a consent was given for.
type ConnectionConsent struct {
	// providerUID is the UID of the ConnectorProvider.
	// +optional
	ProviderUID types.UID `json:"providerUID,omitempty"`
	// authorityDigest is a digest of the client and the addresses that the consent authorized.
	// +optional
	AuthorityDigest string `json:"authorityDigest,omitempty"`
}

// +genclient
// +genclient:onlyVerbs=create
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConnectionAuthorization begins a consent; it is not stored. A person creates one to connect an account, which makes the connection unless
// it exists, or on connections/authorize of their own connection. The consent that was begun before is replaced.
type ConnectionAuthorization struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the connection in an answer. In a create only the namespace is used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is asked for.
	// +optional
	Spec ConnectionAuthorizationSpec `json:"spec,omitempty"`
	// status is the answer.
	// +optional
	Status ConnectionAuthorizationStatus `json:"status,omitempty"`
}

// ConnectionAuthorizationSpec is what is asked for.
type ConnectionAuthorizationSpec struct {
	// providerRef is the ConnectorProvider. It is required, except on connections/authorize, where it is that of the connection.
	// +optional
	// +k8s:optional
	ProviderRef *LocalReference `json:"providerRef,omitempty"`
	// mode is what the account is to be used for; the connection is changed first if it has another mode. Unset means the mode of the
	// connection, and readOnly for a new one. On connections/authorize a consent is begun without a mode, or if what was granted does not
	// cover the mode.
	// +optional
	// +k8s:optional
	Mode ConnectionMode `json:"mode,omitempty"`
}

// ConnectionAuthorizationStatus is where a person gives consent.
type ConnectionAuthorizationStatus struct {
	// authorizeURL is the page of the provider, which the person opens within 10 minutes; empty if no consent is needed.
	// +optional
	AuthorizeURL string `json:"authorizeURL,omitempty"`
	// expiresAt is when the consent has to be given by.
	// +optional
	// +k8s:optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`
	// connection is the connection as it is now.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Connection *Connection `json:"connection,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConnectionCompletion ends a consent: it commits the tokens that the provider gave. The owner of the connection creates one on
// connections/complete; it is not stored.
type ConnectionCompletion struct {
	metav1.TypeMeta `json:",inline"`
	// metadata holds the name and the namespace of the connection in an answer. In a create it is not used.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what the browser was given.
	// +required
	Spec ConnectionCompletionSpec `json:"spec"`
	// status is the answer.
	// +optional
	Status ConnectionCompletionStatus `json:"status,omitempty"`
}

// ConnectionCompletionSpec is what the browser was given. An answer does not repeat it.
type ConnectionCompletionSpec struct {
	// completion is the token from the fragment of the address to which the browser was sent. It counts once.
	// +required
	// +k8s:required
	// +k8s:maxLength=256
	Completion string `json:"completion"`
}

// ConnectionCompletionStatus is the outcome of a completion.
type ConnectionCompletionStatus struct {
	// connection is the connection with the committed consent.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	Connection *Connection `json:"connection,omitempty"`
}
