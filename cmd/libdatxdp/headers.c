//go:build cgo && datprovider

/* Compile-time checks of the headers of libdat2. */

#include "shim.h"

_Static_assert(sizeof(DAT_PROVIDER) == 81 * sizeof(void *), "DAT_PROVIDER has 81 words");
_Static_assert(sizeof(DAT_LMR_TRIPLET) == 16 && sizeof(DAT_RMR_TRIPLET) == 16, "triplets");
_Static_assert(sizeof(DAT_PROVIDER_INFO) == 268, "DAT_PROVIDER_INFO");
_Static_assert(sizeof(DAT_EP_ATTR) == 88 || sizeof(void *) != 8, "DAT_EP_ATTR");
_Static_assert(sizeof(DAT_EVENT) == 120 || sizeof(void *) != 8, "DAT_EVENT");
_Static_assert(sizeof(DAT_IA_ATTR) == 688 || sizeof(void *) != 8, "DAT_IA_ATTR");
_Static_assert(sizeof(DAT_PROVIDER_ATTR) == 520 || sizeof(void *) != 8, "DAT_PROVIDER_ATTR");
_Static_assert(sizeof(DAT_EP_PARAM) == 184 || sizeof(void *) != 8, "DAT_EP_PARAM");
_Static_assert(sizeof(DAT_CR_PARAM) == 40 || sizeof(void *) != 8, "DAT_CR_PARAM");
_Static_assert(sizeof(DAT_EVD_PARAM) == 32 || sizeof(void *) != 8, "DAT_EVD_PARAM");
_Static_assert(sizeof(DAT_IB_EXTENSION_EVENT_DATA) <= sizeof(((DAT_EVENT *)0)->event_extension_data), "extension data");
