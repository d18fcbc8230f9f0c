/*
 * What the stand-in's script says, and the handles that it gives out. Part of nvml.c.
 */
#define _GNU_SOURCE
#include <ctype.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "nvml.h"

#define MOST_DEVICES 512
#define MOST_FIELDS 48
#define MOST_PROCESSES 512
#define MOST_XIDS 256
#define TEXT 96
#define NO_INSTANCE 0xFFFFFFFFu

struct field {
    char key[32];
    char value[TEXT];
};

struct device {
    int mig; /* it is a MIG device */
    char uuid[TEXT], parent[TEXT];
    int fields;
    struct field field[MOST_FIELDS];
};

struct process {
    char uuid[TEXT], name[TEXT];
    unsigned pid;
    unsigned long long bytes;
};

struct xid {
    char uuid[TEXT];
    unsigned long long seq, code;
    unsigned gi, ci;
};

/* The script as it was last read. */
static struct {
    char driver[TEXT];
    long boot;
    double epoch; /* when the driver started: counters count from there */
    nvmlReturn_t down;
    int devices, processes, xids;
    struct device device[MOST_DEVICES];
    struct process process[MOST_PROCESSES];
    struct xid xid[MOST_XIDS];
} script;

static struct timespec script_time;
static ino_t script_inode;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* Since nvmlInit: handles are indexes into known, with the number of the start above them. */
static int starts, references;
static unsigned long generation;
static long booted;
static int knowns, gpus;
static char known[MOST_DEVICES][TEXT];
static unsigned long long delivered;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

static void copy(char *to, const char *from, size_t size) {
    snprintf(to, size, "%s", from);
}

/* The next word of a line: key=value, where a value may be in quotes. NULL at its end. */
static char *word(char **rest) {
    char *p = *rest, *begin, *end;
    int quoted = 0;
    while (isspace((unsigned char)*p)) p++;
    if (*p == 0 || *p == '#') return NULL;
    begin = end = p;
    for (; *p && (quoted || !isspace((unsigned char)*p)); p++) {
        if (*p == '"') quoted = !quoted;
        else *end++ = *p;
    }
    if (*p) p++;
    *rest = p;
    *end = 0;
    return begin;
}

static const struct { const char *name; nvmlReturn_t value; } results[] = {
    {"uninitialized", NVML_ERROR_UNINITIALIZED},
    {"not_supported", NVML_ERROR_NOT_SUPPORTED},
    {"no_permission", NVML_ERROR_NO_PERMISSION},
    {"driver_not_loaded", NVML_ERROR_DRIVER_NOT_LOADED},
    {"gpu_is_lost", NVML_ERROR_GPU_IS_LOST},
    {"reset_required", NVML_ERROR_RESET_REQUIRED},
    {"version_mismatch", NVML_ERROR_LIB_RM_VERSION_MISMATCH},
    {"unknown", NVML_ERROR_UNKNOWN},
};

static nvmlReturn_t result(const char *name) {
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (strcmp(name, results[i].name) == 0) return results[i].value;
    fprintf(stderr, "fake nvml: no such result: %s\n", name);
    abort();
}

static void put(struct device *d, const char *key, const char *value) {
    if (d->fields == MOST_FIELDS) abort();
    copy(d->field[d->fields].key, key, sizeof d->field->key);
    copy(d->field[d->fields++].value, value, TEXT);
}

static void parse_line(char *line) {
    char *kind = word(&line), *w;
    struct device *d = NULL;
    struct process *p = NULL;
    struct xid *x = NULL;
    if (kind == NULL) return;
    if (strcmp(kind, "gpu") == 0 || strcmp(kind, "mig") == 0) {
        if (script.devices == MOST_DEVICES) abort();
        d = &script.device[script.devices++];
        memset(d, 0, sizeof *d);
        d->mig = kind[0] == 'm';
    } else if (strcmp(kind, "process") == 0) {
        if (script.processes == MOST_PROCESSES) abort();
        p = &script.process[script.processes++];
        memset(p, 0, sizeof *p);
        p->bytes = ~0ull; /* NVML_VALUE_NOT_AVAILABLE */
    } else if (strcmp(kind, "xid") == 0) {
        if (script.xids == MOST_XIDS) abort();
        x = &script.xid[script.xids++];
        memset(x, 0, sizeof *x);
        x->gi = x->ci = NO_INSTANCE;
    }
    while ((w = word(&line)) != NULL) {
        char *value = strchr(w, '=');
        if (value) *value++ = 0;
        else value = w;
        if (d && strcmp(w, "uuid") == 0) copy(d->uuid, value, TEXT);
        else if (d && strcmp(w, "parent") == 0) copy(d->parent, value, TEXT);
        else if (d) put(d, w, value);
        else if (p && strcmp(w, "device") == 0) copy(p->uuid, value, TEXT);
        else if (p && strcmp(w, "name") == 0) copy(p->name, value, TEXT);
        else if (p && strcmp(w, "pid") == 0) p->pid = strtoul(value, NULL, 10);
        else if (p && strcmp(w, "mib") == 0) p->bytes = strtoull(value, NULL, 10) << 20;
        else if (x && strcmp(w, "device") == 0) copy(x->uuid, value, TEXT);
        else if (x && strcmp(w, "seq") == 0) x->seq = strtoull(value, NULL, 10);
        else if (x && strcmp(w, "code") == 0) x->code = strtoull(value, NULL, 10);
        else if (x && strcmp(w, "gi") == 0) x->gi = strtoul(value, NULL, 10);
        else if (x && strcmp(w, "ci") == 0) x->ci = strtoul(value, NULL, 10);
        else if (strcmp(kind, "driver") == 0) copy(script.driver, value, TEXT);
        else if (strcmp(kind, "boot") == 0) script.boot = atol(value);
        else if (strcmp(kind, "epoch") == 0) script.epoch = atof(value);
        else if (strcmp(kind, "down") == 0) script.down = result(value);
        else {
            fprintf(stderr, "fake nvml: cannot read the script: %s %s\n", kind, w);
            abort();
        }
    }
}

/* Reads the script where it is another than before. Its writer makes the times differ. */
static void reread(void) {
    const char *path = getenv("SUANPAN_FAKE_NVML");
    struct stat s;
    char line[4096];
    FILE *f;
    if (path == NULL || stat(path, &s) != 0) {
        memset(&script, 0, sizeof script);
        script.down = NVML_ERROR_DRIVER_NOT_LOADED;
        memset(&script_time, 0, sizeof script_time);
        return;
    }
    if (s.st_mtim.tv_sec == script_time.tv_sec && s.st_mtim.tv_nsec == script_time.tv_nsec &&
        s.st_ino == script_inode)
        return;
    if ((f = fopen(path, "r")) == NULL) return;
    fstat(fileno(f), &s); /* of what is read, should it have been replaced */
    script.driver[0] = 0;
    script.boot = script.devices = script.processes = script.xids = 0;
    script.epoch = 0;
    script.down = NVML_SUCCESS;
    while (fgets(line, sizeof line, f)) parse_line(line);
    fclose(f);
    script_time = s.st_mtim;
    script_inode = s.st_ino;
}

static struct device *find(const char *uuid) {
    for (int i = 0; i < script.devices; i++)
        if (strcmp(script.device[i].uuid, uuid) == 0) return &script.device[i];
    return NULL;
}

static const char *get(const struct device *d, const char *key) {
    for (int i = 0; i < d->fields; i++)
        if (strcmp(d->field[i].key, key) == 0) return d->field[i].value;
    return NULL;
}

/* A number: "42", "10,20,30" (the next one each second, over and over) or "100+7" (7 more each
 * second). */
static double number_at(const char *v, double at) {
    double t = at - script.epoch, base;
    char *end;
    int n = 1, i;
    if (t < 0) t = 0;
    base = strtod(v, &end);
    if (*end == '+') return floor(base + strtod(end + 1, NULL) * t);
    for (const char *c = v; *c; c++) n += *c == ',';
    for (i = (long long)t % n; i > 0; i--) v = strchr(v, ',') + 1;
    return strtod(v, NULL);
}

static nvmlDevice_t handle_of(const char *uuid) {
    int i;
    for (i = 0; i < knowns && strcmp(known[i], uuid) != 0; i++) {}
    if (i == knowns) {
        if (knowns == MOST_DEVICES) abort();
        copy(known[knowns++], uuid, TEXT);
    }
    return (nvmlDevice_t){(struct nvmlDevice_st *)(generation << 16 | (unsigned long)(i + 1))};
}

/* Begins a call: the script is up to date and the driver there, or it returns why not. */
static nvmlReturn_t enter(void) {
    pthread_mutex_lock(&lock);
    reread();
    if (references == 0) return NVML_ERROR_UNINITIALIZED;
    if (script.down != NVML_SUCCESS) return script.down;
    if (script.boot != booted) return NVML_ERROR_UNINITIALIZED;
    return NVML_SUCCESS;
}

static nvmlReturn_t leave(nvmlReturn_t r) {
    pthread_mutex_unlock(&lock);
    return r;
}

/* Begins a call about a device. */
static nvmlReturn_t enter_device(nvmlDevice_t handle, struct device **d) {
    unsigned long h = (unsigned long)handle.handle, slot = h & 0xFFFF;
    const char *fail;
    nvmlReturn_t r = enter();
    if (r != NVML_SUCCESS) return r;
    if (h >> 16 != generation || slot == 0 || slot > (unsigned long)knowns)
        return NVML_ERROR_INVALID_ARGUMENT;
    *d = find(known[slot - 1]);
    if (*d == NULL) /* a GPU that vanished is lost, a MIG device is just gone */
        return (int)slot <= gpus ? NVML_ERROR_GPU_IS_LOST : NVML_ERROR_INVALID_ARGUMENT;
    fail = get(*d, "fail");
    if (fail == NULL && (*d)->mig) {
        struct device *parent = find((*d)->parent);
        if (parent == NULL) return NVML_ERROR_GPU_IS_LOST;
        fail = get(parent, "fail");
    }
    return fail ? result(fail) : NVML_SUCCESS;
}

/* A number that a device tells, or that it does not support it. */
static nvmlReturn_t number(nvmlDevice_t handle, const char *key, double *v) {
    struct device *d;
    const char *text;
    nvmlReturn_t r = enter_device(handle, &d);
    if (r == NVML_SUCCESS && (text = get(d, key)) != NULL) *v = number_at(text, now());
    else if (r == NVML_SUCCESS) r = NVML_ERROR_NOT_SUPPORTED;
    return leave(r);
}

static nvmlReturn_t number32(nvmlDevice_t handle, const char *key, unsigned *v) {
    double x = 0;
    nvmlReturn_t r = number(handle, key, &x);
    if (r == NVML_SUCCESS) *v = (unsigned)x;
    return r;
}

static nvmlReturn_t number64(nvmlDevice_t handle, const char *key, unsigned long long *v) {
    double x = 0;
    nvmlReturn_t r = number(handle, key, &x);
    if (r == NVML_SUCCESS) *v = (unsigned long long)x;
    return r;
}

static nvmlReturn_t words(nvmlDevice_t handle, const char *key, char *to, unsigned size) {
    struct device *d;
    const char *v;
    nvmlReturn_t r = enter_device(handle, &d);
    if (r != NVML_SUCCESS) return leave(r);
    v = strcmp(key, "uuid") == 0 ? d->uuid : get(d, key);
    if (v == NULL) return leave(NVML_ERROR_NOT_SUPPORTED);
    if (strlen(v) >= size) return leave(NVML_ERROR_INSUFFICIENT_SIZE);
    copy(to, v, size);
    return leave(NVML_SUCCESS);
}
