/* SPDX-License-Identifier: Apache-2.0 */
#ifndef NET_TLS_H
#define NET_TLS_H

/* The server's side of TLS 1.2 and 1.3, bytes in and bytes out: OpenSSL works on memory, so it
 * never sees a socket. HTTP/2 and HTTP/1.1 are offered by ALPN. */

#include <openssl/ssl.h>
#include <stdbool.h>

#include "conflict/base/bytes.h"

/* NULL on failure, with the reason in error. */
SSL_CTX *tls_context_new(const char *certificate_file, const char *key_file, char *error,
                         size_t error_len);

struct tls {
    SSL *ssl;
    BIO *in, *out; /* owned by ssl */
};

enum tls_outcome { TLS_OPEN = 1, TLS_HANDSHAKING, TLS_ENDED, TLS_BROKEN };

void tls_init(struct tls *tls, SSL_CTX *context);
void tls_deinit(struct tls *tls);
void tls_received(struct tls *tls, struct bytes ciphertext);
enum tls_outcome tls_handshake(struct tls *tls);
/* Decrypts what it can of what has been received; 0 bytes with TLS_OPEN: more has to be received
 * first. */
enum tls_outcome tls_read(struct tls *tls, uint8_t *to, size_t len, size_t *ret_len);
/* Encrypts all of it. */
bool tls_write(struct tls *tls, struct bytes plain);
void tls_finish(struct tls *tls);
/* Moves what is to be sent to the end of `to`. */
void tls_drain(struct tls *tls, struct buf *to);
bool tls_chose_h2(const struct tls *tls);

#endif
