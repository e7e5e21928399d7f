// Copyright The Platform Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +genclient
// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object
// +k8s:supportsSubresource="/status"

// ConnectorProvider is a service at which people have accounts of their own, such as a code host, and the OAuth 2.0 client (RFC 6749)
// with which the platform asks them for access. It has no effect unless the server was started with --connectors-enabled.
type ConnectorProvider struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name has at most 63 characters, because connections have it as a label.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`
	// spec is what is wanted.
	// +required
	Spec ConnectorProviderSpec `json:"spec"`
	// status is what is observed, written by controllers.
	// +optional
	Status ConnectorProviderStatus `json:"status,omitempty"`
}

// +k8s:deepcopy-gen:interfaces=k8s.io/apimachinery/pkg/runtime.Object

// ConnectorProviderList is a list of connector providers.
type ConnectorProviderList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`
	// items are the providers.
	Items []ConnectorProvider `json:"items"`
}

// ConnectorProviderSpec is a service and what may be done there.
type ConnectorProviderSpec struct {
	// displayName is what people see; empty means the name of the object.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=128
	DisplayName string `json:"displayName,omitempty"`
	// oauth is the client of the platform at the service.
	// +required
	OAuth ConnectorOAuth `json:"oauth"`
	// tools are what agents may do with a person's account, from 1 to 64.
	// +required
	// +k8s:required
	// +k8s:maxItems=64
	// +listType=map
	// +listMapKey=name
	// +k8s:listType=map
	// +k8s:listMapKey=name
	// +patchStrategy=merge
	// +patchMergeKey=name
	Tools []ConnectorTool `json:"tools" patchStrategy:"merge" patchMergeKey:"name"`
}

// ConnectorClientAuthentication is how the client presents its secret.
// +enum
// +k8s:enum
type ConnectorClientAuthentication string

// Values of ConnectorClientAuthentication (RFC 6749, section 2.3.1).
const (
	// ClientSecretBasic sends it in the header Authorization.
	ClientSecretBasic ConnectorClientAuthentication = "ClientSecretBasic"
	// ClientSecretPost sends it in the body.
	ClientSecretPost ConnectorClientAuthentication = "ClientSecretPost"
)

// ConnectorOAuth is an OAuth 2.0 client. Its addresses are https, at most 2048 bytes, with a public host; a query of theirs has at most
// 1024 bytes and no parameter that OAuth defines or that looks like a credential.
type ConnectorOAuth struct {
	// issuer is the identifier of the authorization server (RFC 9207): if it is set, the answer to a consent must name it in iss. If it is
	// empty, an iss that is there must be on the host of authorizeURL or tokenURL.
	// +optional
	// +k8s:optional
	// +k8s:maxBytes=2048
	Issuer string `json:"issuer,omitempty"`
	// authorizeURL is where people give their consent.
	// +required
	// +k8s:required
	// +k8s:maxBytes=2048
	AuthorizeURL string `json:"authorizeURL"`
	// tokenURL is where codes are exchanged and tokens are refreshed.
	// +required
	// +k8s:required
	// +k8s:maxBytes=2048
	TokenURL string `json:"tokenURL"`
	// revocationURL is where tokens are revoked (RFC 7009) when a person disconnects. It is on the host and port of tokenURL.
	// +optional
	// +k8s:optional
	// +k8s:maxBytes=2048
	RevocationURL string `json:"revocationURL,omitempty"`
	// clientID identifies the client, in printable ASCII.
	// +required
	// +k8s:required
	// +k8s:maxBytes=256
	ClientID string `json:"clientID"`
	// clientSecretRef is the Secret key with the secret of the client.
	// +required
	ClientSecretRef KeyReference `json:"clientSecretRef"`
	// clientAuthentication is ClientSecretBasic or ClientSecretPost.
	// +optional
	// +default="ClientSecretBasic"
	// +k8s:optional
	ClientAuthentication ConnectorClientAuthentication `json:"clientAuthentication,omitempty"`
	// pkce proves in the exchange of a code that the consent was begun here (RFC 7636).
	// +optional
	// +default=true
	// +k8s:optional
	PKCE *bool `json:"pkce,omitempty"`
	// scopes are what people are asked to grant.
	// +optional
	Scopes ConnectorScopes `json:"scopes,omitempty"`
	// additionalAuthorizeParameters are sent to authorizeURL: at most 16, with values of at most 512 bytes, 2048 bytes encoded together.
	// Parameters that OAuth defines, and such as look like credentials, are refused.
	// +optional
	// +k8s:optional
	AdditionalAuthorizeParameters map[string]string `json:"additionalAuthorizeParameters,omitempty"`
}

// ConnectorScopes are scopes of OAuth 2.0 (RFC 6749, section 3.3), without commas. Both lists together encode to at most 2048 bytes.
type ConnectorScopes struct {
	// read are the scopes of every connection.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +listType=set
	// +k8s:listType=set
	Read []string `json:"read,omitempty"`
	// write are those that a connection of mode readWrite needs as well.
	// +optional
	// +k8s:optional
	// +k8s:maxItems=32
	// +listType=set
	// +k8s:listType=set
	Write []string `json:"write,omitempty"`
}

// ConnectorToolClass says whether a tool changes something.
// +enum
// +k8s:enum
type ConnectorToolClass string

// Values of ConnectorToolClass.
const (
	ConnectorToolRead ConnectorToolClass = "read"
	// ConnectorToolWrite is hidden from connections of mode readOnly, and each call needs an approval.
	ConnectorToolWrite ConnectorToolClass = "write"
)

// ConnectorToolSource says where the definition of a tool is.
// +enum
// +k8s:enum
type ConnectorToolSource string

// Values of ConnectorToolSource.
const (
	// ConnectorSourceBuiltin is a tool of the platform, called with the account of the person.
	ConnectorSourceBuiltin ConnectorToolSource = "Builtin"
	// ConnectorSourceHTTP is defined here.
	ConnectorSourceHTTP ConnectorToolSource = "HTTP"
)

// ConnectorTool is something that agents may do with a person's account.
type ConnectorTool struct {
	// name is in lower snake case, at most 64 characters.
	// +required
	// +k8s:required
	// +k8s:maxLength=64
	Name string `json:"name"`
	// class is read or write.
	// +required
	// +k8s:required
	Class ConnectorToolClass `json:"class"`
	// source is Builtin or HTTP.
	// +required
	// +k8s:required
	Source ConnectorToolSource `json:"source"`
	// description is what a model reads of the tool; for source HTTP only.
	// +optional
	// +k8s:optional
	// +k8s:maxLength=1024
	Description string `json:"description,omitempty"`
	// parameters is the JSON Schema of the arguments, with the type object at its root and without references to elsewhere; for source HTTP
	// only.
	// +optional
	// +k8s:optional
	// +k8s:opaqueType
	// +patchStrategy=replace
	Parameters *apiextensionsv1.JSON `json:"parameters,omitempty" patchStrategy:"replace"`
	// http is where the tool is called; for source HTTP only, and required there.
	// +optional
	// +k8s:optional
	HTTP *ConnectorToolHTTP `json:"http,omitempty"`
}

// ConnectorToolHTTP is the request that calls a tool. The arguments are its JSON body, or its query for GET and DELETE.
type ConnectorToolHTTP struct {
	// url is the address, https, with a public host and without placeholders.
	// +required
	// +k8s:required
	// +k8s:maxBytes=2048
	URL string `json:"url"`
	// method is GET, POST, PUT, PATCH or DELETE.
	// +optional
	// +default="POST"
	// +k8s:optional
	Method ToolMethod `json:"method,omitempty"`
	// headers are sent with each call: at most 16, with names of at most 128 bytes, values of 1024, all together 4096. Names that carry
	// credentials or belong to a single connection are refused.
	// +optional
	// +k8s:optional
	Headers map[string]string `json:"headers,omitempty"`
	// timeout limits one call, up to 10 minutes.
	// +optional
	// +default="30s"
	// +k8s:optional
	Timeout *Duration `json:"timeout,omitempty"`
}

// ConnectorProviderStatus is what is observed of a provider.
type ConnectorProviderStatus struct {
	// observedGeneration is the generation that the status is about.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// conditions are the conditions of the object: Accepted, ResolvedRefs.
	// +optional
	// +k8s:optional
	// +listType=map
	// +listMapKey=type
	// +patchStrategy=merge
	// +patchMergeKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty" patchStrategy:"merge" patchMergeKey:"type"`
}
