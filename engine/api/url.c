/* guard_url.c: the functions of sessile_screen.h that judge URLs and addresses. */
#include "api/api.h"

#include "screen/url.h"

void sessile_url_options_init(sessile_url_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status sessile_url_check(sessile_slice text, const sessile_url_options *options,
                                 sessile_url_found *found, sessile_error *err)
{
    static const sessile_url_found none = {0, 0, NULL};

    error_clear(err);
    API_OPTIONS(sessile_url_options, options);
    API_OPTIONAL(sessile_url_found, found, none);
    API_TEXT(text);
    API_TEXTS(options->allow, options->allow_count);
    return url_check(text, options, IDN_LIBRARY, found, err);
}

sessile_status sessile_address_check(int family, const void *bytes, int port,
                                     const sessile_url_options *options,
                                     sessile_error *err)
{
    error_clear(err);
    API_OPTIONS(sessile_url_options, options);
    API_NEED(bytes);
    API_TEXTS(options->allow, options->allow_count);
    return url_address_check(family, bytes, port, options, err);
}
