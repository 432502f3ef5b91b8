/* consents.h: the consents of users to what agents keep of them. */
#ifndef ADMIN_CONSENTS_H
#define ADMIN_CONSENTS_H

#include "session/store_handle.h"
#include "sessile_privacy.h"

/* As sessile_privacy.h says of sessile_consent() and _consents(). */
sessile_status consent_set(store_core *st, const sessile_consent_options *options,
                           size_t *erased, sessile_error *err);
sessile_status consent_list(store_core *st, sessile_slice user, sessile_consent_row **out,
                            size_t *count, sessile_error *err);

#endif
