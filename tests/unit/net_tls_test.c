/* SPDX-License-Identifier: Apache-2.0 */
/* TLS on real sockets against OpenSSL's own client, with a certificate made for the occasion. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <unistd.h>

#include "net/server.h"
#include "tests/lib/net_raw.h"

static char key_file[] = "/tmp/tidemark_key_XXXXXX";
static char certificate_file[] = "/tmp/tidemark_cert_XXXXXX";

static int make_certificate(void **state)
{
    (void)state;
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *certificate = X509_new();
    X509_set_version(certificate, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate), 1);
    X509_gmtime_adj(X509_getm_notBefore(certificate), -60);
    X509_gmtime_adj(X509_getm_notAfter(certificate), 3600);
    X509_set_pubkey(certificate, key);
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate), "CN", MBSTRING_ASC,
                               (const unsigned char *)"localhost", -1, -1, 0);
    X509_set_issuer_name(certificate, X509_get_subject_name(certificate));
    X509_sign(certificate, key, EVP_sha256());
    FILE *file = fdopen(mkstemp(key_file), "w");
    PEM_write_PrivateKey(file, key, NULL, NULL, 0, NULL, NULL);
    fclose(file);
    file = fdopen(mkstemp(certificate_file), "w");
    PEM_write_X509(file, certificate);
    fclose(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
    return 0;
}

static int remove_certificate(void **state)
{
    (void)state;
    unlink(key_file);
    unlink(certificate_file);
    return 0;
}

struct fixture {
    struct loop loop;
    struct server *server;
    /* The client. */
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out;
    struct raw *raw;
    struct buf plain;
    bool broken;
};

static void on_request(void *context, struct exchange *exchange)
{
    (void)context;
    exchange_respond(exchange, 200, NULL, 0, exchange_request(exchange)->body);
}

static void start(struct fixture *f, int version_max, const char *alpn)
{
    char error[300];
    struct server_limits limits = server_limits_default();
    struct server_tls tls = {certificate_file, key_file};
    struct server_handler handler = {.request = on_request};
    *f = (struct fixture){0};
    loop_init(&f->loop);
    f->server =
        server_listen(&f->loop, "127.0.0.1:0", &limits, &tls, &handler, error, sizeof(error));
    if (!f->server)
        fail_msg("%s", error);
    f->context = SSL_CTX_new(TLS_client_method());
    SSL_CTX_set_security_level(f->context, 0);
    SSL_CTX_set_min_proto_version(f->context, TLS1_VERSION);
    SSL_CTX_set_max_proto_version(f->context, version_max);
    f->ssl = SSL_new(f->context);
    f->in = BIO_new(BIO_s_mem());
    f->out = BIO_new(BIO_s_mem());
    SSL_set_bio(f->ssl, f->in, f->out);
    if (alpn)
        SSL_set_alpn_protos(f->ssl, (const unsigned char *)alpn, (unsigned)strlen(alpn));
    SSL_set_connect_state(f->ssl);
    f->raw = raw_open(&f->loop, server_port(f->server));
}

static void stop(struct fixture *f)
{
    raw_close(f->raw);
    server_close(f->server);
    loop_deinit(&f->loop);
    buf_deinit(&f->plain);
    SSL_free(f->ssl);
    SSL_CTX_free(f->context);
}

/* Moves bytes between the socket and OpenSSL; true when the handshake is done. */
static bool pump(struct fixture *f)
{
    if (f->raw->in.len)
        BIO_write(f->in, f->raw->in.at, (int)f->raw->in.len);
    buf_reset(&f->raw->in);
    int status = SSL_do_handshake(f->ssl);
    if (status != 1 && SSL_get_error(f->ssl, status) == SSL_ERROR_SSL)
        f->broken = true;
    for (size_t len = 1; status == 1 && len;)
        if (SSL_read_ex(f->ssl, buf_reserve(&f->plain, 4096), 4096, &len) == 1)
            f->plain.len += len;
        else
            len = 0;
    char *at = NULL;
    long len = BIO_get_mem_data(f->out, &at);
    if (len > 0)
        raw_send_bytes(f->raw, bytes_make(at, (size_t)len));
    (void)BIO_reset(f->out);
    return status == 1;
}

static bool plain_has(struct fixture *f, const char *text)
{
    pump(f);
    buf_append_u8(&f->plain, 0);
    f->plain.len--;
    return strstr((const char *)f->plain.at, text) != NULL;
}

static void test_requests(void **state)
{
    (void)state;
    static const int versions[] = {TLS1_2_VERSION, TLS1_3_VERSION};
    for (size_t i = 0; i < array_len(versions); i++) {
        struct fixture f;
        start(&f, versions[i], i ? "\x08http/1.1" : NULL);
        raw_until(&f.loop, pump(&f));
        assert_int_equal(SSL_version(f.ssl), versions[i]);
        static const char head[] = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 50000\r\n\r\n";
        struct buf body = {0};
        for (int at = 0; at < 5000; at++)
            buf_printf(&body, "%10d", at);
        SSL_write(f.ssl, head, sizeof(head) - 1);
        SSL_write(f.ssl, body.at, (int)body.len);
        raw_until(&f.loop, plain_has(&f, "      4999"));
        assert_true(plain_has(&f, "HTTP/1.1 200 OK"));
        buf_deinit(&body);
        stop(&f);
    }
}

static void test_alpn_chooses_http2(void **state)
{
    (void)state;
    struct fixture f;
    const unsigned char *chosen = NULL;
    unsigned len = 0;
    start(&f, TLS1_3_VERSION, "\x08http/1.1\x02h2");
    raw_until(&f.loop, pump(&f));
    SSL_get0_alpn_selected(f.ssl, &chosen, &len);
    assert_true(bytes_is(bytes_make(chosen, len), "h2"));
    raw_until(&f.loop, (pump(&f), f.plain.len >= 9)); /* its SETTINGS come unasked */
    assert_int_equal(f.plain.at[3], 4);
    stop(&f);
}

static void test_refused_handshakes(void **state)
{
    (void)state;
    struct fixture f;
    start(&f, TLS1_1_VERSION, NULL);
    raw_until(&f.loop, (pump(&f), f.broken));
    raw_until(&f.loop, f.raw->ended);
    stop(&f);
    start(&f, TLS1_3_VERSION, "\x04smtp");
    raw_until(&f.loop, (pump(&f), f.broken));
    raw_until(&f.loop, f.raw->ended);
    stop(&f);
    start(&f, TLS1_3_VERSION, NULL);
    raw_send(f.raw, "GET / HTTP/1.1\r\nHost: plain\r\n\r\n");
    raw_until(&f.loop, f.raw->ended);
    stop(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests),
        cmocka_unit_test(test_alpn_chooses_http2),
        cmocka_unit_test(test_refused_handshakes),
    };
    return cmocka_run_group_tests(tests, make_certificate, remove_certificate);
}
