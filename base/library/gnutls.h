/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * GnuTLS, loaded when it is first used: see library.h.
 */
#ifndef BARLINE_BASE_LIBRARY_GNUTLS_H
#define BARLINE_BASE_LIBRARY_GNUTLS_H

#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

#include "base/library/library.h"

#ifndef BL_LIBRARIES_LINKED
/* clang-format off */
#define gnutls_base64_decode2 BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_base64_decode2)
#define gnutls_base64_encode2 BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_base64_encode2)
#define gnutls_certificate_allocate_credentials \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_allocate_credentials)
#define gnutls_certificate_free_credentials \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_free_credentials)
#define gnutls_certificate_get_peers BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_get_peers)
#define gnutls_certificate_server_set_request \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_server_set_request)
#define gnutls_certificate_set_x509_key_file \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_set_x509_key_file)
#define gnutls_certificate_set_x509_trust_file \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_set_x509_trust_file)
#define gnutls_certificate_verification_status_print \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_verification_status_print)
#define gnutls_certificate_verify_peers2 \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_certificate_verify_peers2)
#define gnutls_credentials_set BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_credentials_set)
#define gnutls_deinit BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_deinit)
#define gnutls_error_is_fatal BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_error_is_fatal)
#define gnutls_free BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_free)
#define gnutls_handshake BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_handshake)
#define gnutls_hmac_fast BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_hmac_fast)
#define gnutls_init BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_init)
#define gnutls_load_file BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_load_file)
#define gnutls_memset BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_memset)
#define gnutls_record_check_pending BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_record_check_pending)
#define gnutls_record_get_direction BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_record_get_direction)
#define gnutls_record_recv BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_record_recv)
#define gnutls_record_send BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_record_send)
#define gnutls_rnd BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_rnd)
#define gnutls_session_get_verify_cert_status \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_session_get_verify_cert_status)
#define gnutls_session_set_verify_cert2 \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_session_set_verify_cert2)
#define gnutls_set_default_priority BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_set_default_priority)
#define gnutls_strerror BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_strerror)
#define gnutls_transport_set_int2 BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_transport_set_int2)
#define gnutls_x509_crt_deinit BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_deinit)
#define gnutls_x509_crt_export2 BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_export2)
#define gnutls_x509_crt_get_activation_time \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_get_activation_time)
#define gnutls_x509_crt_get_dn_by_oid BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_get_dn_by_oid)
#define gnutls_x509_crt_get_expiration_time \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_get_expiration_time)
#define gnutls_x509_crt_get_serial BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_get_serial)
#define gnutls_x509_crt_get_subject_alt_name \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_get_subject_alt_name)
#define gnutls_x509_crt_import BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_import)
#define gnutls_x509_crt_init BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_init)
#define gnutls_x509_crt_set_activation_time \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_activation_time)
#define gnutls_x509_crt_set_basic_constraints \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_basic_constraints)
#define gnutls_x509_crt_set_dn_by_oid BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_dn_by_oid)
#define gnutls_x509_crt_set_expiration_time \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_expiration_time)
#define gnutls_x509_crt_set_key BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_key)
#define gnutls_x509_crt_set_key_purpose_oid \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_key_purpose_oid)
#define gnutls_x509_crt_set_key_usage BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_key_usage)
#define gnutls_x509_crt_set_serial BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_serial)
#define gnutls_x509_crt_set_subject_alt_name \
	BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_subject_alt_name)
#define gnutls_x509_crt_set_version BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_set_version)
#define gnutls_x509_crt_sign2 BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_sign2)
#define gnutls_x509_crt_verify BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_crt_verify)
#define gnutls_x509_privkey_deinit BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_privkey_deinit)
#define gnutls_x509_privkey_export2 BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_privkey_export2)
#define gnutls_x509_privkey_generate BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_privkey_generate)
#define gnutls_x509_privkey_import BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_privkey_import)
#define gnutls_x509_privkey_init BL_LOADED(BL_LIBRARY_GNUTLS, gnutls_x509_privkey_init)
/* clang-format on */
#endif

#endif
