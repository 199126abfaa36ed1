/* SPDX-License-Identifier: Apache-2.0 */
/* OpenSSL on two memory BIOs; see tls.h. */

#include "net/tls.h"

#include <limits.h>
#include <openssl/err.h>
#include <stdio.h>
#include <string.h>

#include "conflict/base/check.h"

static int choose_protocol(SSL *ssl, const unsigned char **ret_chosen, unsigned char *ret_len,
                           const unsigned char *offered, unsigned offered_len, void *context)
{
    static const unsigned char ours[] = "\x02h2\x08http/1.1";
    (void)ssl;
    (void)context;
    unsigned char *chosen = NULL;
    int outcome =
        SSL_select_next_proto(&chosen, ret_len, ours, sizeof(ours) - 1, offered, offered_len);
    if (outcome != OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL; /* RFC 7301 section 3.2 */
    *ret_chosen = chosen;
    return SSL_TLSEXT_ERR_OK;
}

static SSL_CTX *fail(SSL_CTX *context, const char *what, const char *file, char *error,
                     size_t error_len)
{
    const char *reason = ERR_reason_error_string(ERR_peek_last_error());
    snprintf(error, error_len, "%s %s: %s", what, file, reason ? reason : "unknown error");
    ERR_clear_error();
    SSL_CTX_free(context);
    return NULL;
}

SSL_CTX *tls_context_new(const char *certificate_file, const char *key_file, char *error,
                         size_t error_len)
{
    ERR_clear_error();
    SSL_CTX *context = SSL_CTX_new(TLS_server_method());
    check(context != NULL);
    SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_mode(context, SSL_MODE_RELEASE_BUFFERS);
    /* RFC 9113 section 9.2.2: only suites with forward secrecy and authenticated encryption. */
    check(SSL_CTX_set_cipher_list(context, "ECDHE+AESGCM:ECDHE+CHACHA20") == 1);
    SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    if (SSL_CTX_use_certificate_chain_file(context, certificate_file) != 1)
        return fail(context, "certificate", certificate_file, error, error_len);
    if (!key_file || SSL_CTX_use_PrivateKey_file(context, key_file, SSL_FILETYPE_PEM) != 1)
        return fail(context, "key", key_file ? key_file : "(none)", error, error_len);
    if (SSL_CTX_check_private_key(context) != 1)
        return fail(context, "key", key_file, error, error_len);
    return context;
}

void tls_init(struct tls *tls, SSL_CTX *context)
{
    tls->ssl = SSL_new(context);
    tls->in = BIO_new(BIO_s_mem());
    tls->out = BIO_new(BIO_s_mem());
    check(tls->ssl != NULL);
    check(tls->in != NULL);
    check(tls->out != NULL);
    SSL_set_bio(tls->ssl, tls->in, tls->out);
    SSL_set_accept_state(tls->ssl);
}

void tls_deinit(struct tls *tls)
{
    SSL_free(tls->ssl);
    *tls = (struct tls){0};
}

void tls_received(struct tls *tls, struct bytes ciphertext)
{
    check(ciphertext.len <= INT_MAX);
    if (ciphertext.len)
        check(BIO_write(tls->in, ciphertext.at, (int)ciphertext.len) == (int)ciphertext.len);
}

static enum tls_outcome outcome_of(struct tls *tls, int status)
{
    switch (SSL_get_error(tls->ssl, status)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        return TLS_OPEN;
    case SSL_ERROR_ZERO_RETURN:
        return TLS_ENDED;
    default:
        ERR_clear_error();
        return TLS_BROKEN;
    }
}

enum tls_outcome tls_handshake(struct tls *tls)
{
    ERR_clear_error();
    int status = SSL_do_handshake(tls->ssl);
    if (status == 1)
        return TLS_OPEN;
    return outcome_of(tls, status) == TLS_OPEN ? TLS_HANDSHAKING : TLS_BROKEN;
}

enum tls_outcome tls_read(struct tls *tls, uint8_t *to, size_t len, size_t *ret_len)
{
    ERR_clear_error();
    *ret_len = 0;
    int status = SSL_read_ex(tls->ssl, to, len, ret_len);
    return status == 1 ? TLS_OPEN : outcome_of(tls, status);
}

bool tls_write(struct tls *tls, struct bytes plain)
{
    ERR_clear_error();
    size_t written = 0;
    if (plain.len == 0)
        return true;
    /* Memory takes all of it, or the session is broken. */
    if (SSL_write_ex(tls->ssl, plain.at, plain.len, &written) != 1) {
        ERR_clear_error();
        return false;
    }
    return written == plain.len;
}

void tls_finish(struct tls *tls)
{
    ERR_clear_error();
    SSL_shutdown(tls->ssl);
    ERR_clear_error();
}

void tls_drain(struct tls *tls, struct buf *to)
{
    char *from = NULL;
    long len = BIO_get_mem_data(tls->out, &from);
    if (len <= 0)
        return;
    buf_append(to, from, (size_t)len);
    (void)BIO_reset(tls->out);
}

bool tls_chose_h2(const struct tls *tls)
{
    const unsigned char *name = NULL;
    unsigned len = 0;
    SSL_get0_alpn_selected(tls->ssl, &name, &len);
    return len == 2 && memcmp(name, "h2", 2) == 0;
}
