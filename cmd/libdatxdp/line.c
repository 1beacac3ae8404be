//go:build cgo && datprovider

/* The functions that libdat2 calls when it loads the library for a line of dat.conf. */

#include <pthread.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "shim.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct dx_line *lines; /* never freed, because freed handles still point to the table of a line */

struct dx_line *dx_find_line(const char *name, DAT_BOOLEAN thread_safe)
{
	struct dx_line *l;

	pthread_mutex_lock(&lock);
	for (l = lines; l; l = l->next)
		if (l->info.is_thread_safe == thread_safe && !strcmp(l->info.ia_name, name))
			break;
	pthread_mutex_unlock(&lock);
	return l;
}

static struct dx_line *new_line(const DAT_PROVIDER_INFO *info)
{
	struct dx_line *l = calloc(1, sizeof *l);

	if (!l)
		return NULL;
	l->info = *info;
	l->info.ia_name[sizeof l->info.ia_name - 1] = 0;
	l->table = (dx_logging() ? dx_logged_entries : dx_entries)[!!info->is_thread_safe];
	l->table.device_name = l->info.ia_name;
	pthread_mutex_lock(&lock);
	l->next = lines;
	lines = l;
	pthread_mutex_unlock(&lock);
	return l;
}

void dat_provider_init(const DAT_PROVIDER_INFO *info, const char *params)
{
	struct dx_line *l;
	char *copy;

	if (dx_forked || !info || !(copy = strdup(params ? params : "")))
		return;
	if (!(l = dx_find_line(info->ia_name, info->is_thread_safe)) && !(l = new_line(info))) {
		free(copy);
		return;
	}
	if (dat_registry_add_provider(&l->table, &l->info) != DAT_SUCCESS) { /* a line with this name is registered already */
		free(copy);
		return;
	}
	free(l->params);
	l->params = copy;
}

void dat_provider_fini(const DAT_PROVIDER_INFO *info)
{
	struct dx_line *l;

	if (!dx_forked && info && (l = dx_find_line(info->ia_name, info->is_thread_safe)))
		dat_registry_remove_provider(&l->table, &l->info);
}

/*
 * Implements dat_ib_open_query, which opens an IA and returns its attributes. In place of a handle, libdat2 passes the
 * name of a line of dat.conf.
 */
DAT_RETURN dx_open_query(const char *name, va_list args)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE ia, *out = va_arg(args, DAT_IA_HANDLE *);
	DAT_IA_ATTR_MASK ia_mask = va_arg(args, DAT_IA_ATTR_MASK);
	DAT_IA_ATTR *attr = va_arg(args, DAT_IA_ATTR *);
	DAT_PROVIDER_ATTR_MASK provider_mask = va_arg(args, DAT_PROVIDER_ATTR_MASK);
	DAT_PROVIDER_ATTR *provider = va_arg(args, DAT_PROVIDER_ATTR *);
	struct dx_line *l;
	DAT_RETURN r;

	if (!name || !out) {
		dx_because("dat_ib_open_query needs a name, and a pointer for the handle");
		return DAT_CLASS_ERROR | DAT_INVALID_PARAMETER;
	}
	if (!(l = dx_find_line(name, DAT_FALSE)) && !(l = dx_find_line(name, DAT_TRUE))) {
		dx_because("no line of dat.conf has the name");
		return DAT_CLASS_ERROR | DAT_PROVIDER_NOT_FOUND | DAT_NAME_NOT_REGISTERED;
	}
	if ((r = dx_open(l, 1, &async, &ia)) != DAT_SUCCESS)
		return r;
	if ((r = dx_ia_query(ia, NULL, ia_mask, attr, provider_mask, provider)) != DAT_SUCCESS) {
		dx_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG);
		return r;
	}
	*out = ia;
	return DAT_SUCCESS;
}

/* libdat2 requires this symbol of a provider with extensions, but it calls the function in the table instead. */
DAT_RETURN dapl_extensions(DAT_HANDLE h, DAT_EXTENDED_OP op, va_list args)
{
	return dx_handle_extendedop(h, op, args);
}
