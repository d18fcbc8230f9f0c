/*
 * A stand-in for libnvidia-ml.so.1, for tests on machines without a GPU. What it tells is in the
 * script that $SUANPAN_FAKE_NVML names, which may change while programs run: see package fakenvml.
 * It keeps NVML's habits that matter to its callers: GPUs are those that were there at nvmlInit;
 * handles die with the driver; MIG devices and GPUs in MIG mode have no utilisation; and only what
 * the script gives a device is supported by it.
 *
 * With -DOLD_DRIVER it lacks the functions that a driver of 2021 lacks.
 */
#include "script.h"

nvmlReturn_t nvmlInit_v2(void) {
    pthread_mutex_lock(&lock);
    reread();
    if (script.down != NVML_SUCCESS) return leave(script.down);
    if (references++ > 0 && script.boot == booted) return leave(NVML_SUCCESS);
    references = 1;
    generation = ++starts;
    booted = script.boot;
    if (script.epoch == 0) script.epoch = now();
    knowns = 0;
    for (int i = 0; i < script.devices; i++)
        if (!script.device[i].mig) handle_of(script.device[i].uuid);
    gpus = knowns;
    return leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlInit_v1(void) { return nvmlInit_v2(); }
nvmlReturn_t nvmlInitWithFlags(unsigned flags) { (void)flags; return nvmlInit_v2(); }

nvmlReturn_t nvmlShutdown(void) {
    pthread_mutex_lock(&lock);
    if (references == 0) return leave(NVML_ERROR_UNINITIALIZED);
    references--;
    return leave(NVML_SUCCESS);
}

const char *nvmlErrorString(nvmlReturn_t r) {
    static char other[32];
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (results[i].value == r) return results[i].name;
    snprintf(other, sizeof other, "error %d", (int)r);
    return other;
}

nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length) {
    nvmlReturn_t r = enter();
    if (r == NVML_SUCCESS) copy(version, script.driver, length);
    return leave(r);
}

nvmlReturn_t nvmlSystemGetNVMLVersion(char *version, unsigned length) {
    nvmlReturn_t r = enter();
    if (r == NVML_SUCCESS) snprintf(version, length, "13.%s", script.driver);
    return leave(r);
}

nvmlReturn_t nvmlSystemGetProcessName(unsigned pid, char *name, unsigned length) {
    nvmlReturn_t r = enter();
    if (r != NVML_SUCCESS) return leave(r);
    for (int i = 0; i < script.processes; i++)
        if (script.process[i].pid == pid) {
            copy(name, script.process[i].name, length);
            return leave(NVML_SUCCESS);
        }
    return leave(NVML_ERROR_NOT_FOUND);
}

/* ---- Devices ---- */

nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count) {
    nvmlReturn_t r = enter();
    if (r == NVML_SUCCESS) *count = gpus;
    return leave(r);
}

nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *device) {
    struct device *d;
    nvmlReturn_t r = enter();
    if (r == NVML_SUCCESS && index >= (unsigned)gpus) r = NVML_ERROR_INVALID_ARGUMENT;
    if (r != NVML_SUCCESS) return leave(r);
    *device = handle_of(known[index]);
    leave(r);
    return leave(enter_device(*device, &d)); /* that of a lost GPU is not given out */
}

nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t device, char *uuid, unsigned length) {
    return words(device, "uuid", uuid, length);
}

nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t device, char *name, unsigned length) {
    return words(device, "name", name, length);
}

nvmlReturn_t nvmlDeviceGetSerial(nvmlDevice_t device, char *serial, unsigned length) {
    return words(device, "serial", serial, length);
}

nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t device, nvmlPciInfo_t *pci) {
    memset(pci, 0, sizeof *pci);
    return words(device, "bus", pci->busId, sizeof pci->busId);
}

static nvmlReturn_t memory(nvmlDevice_t device, double mib[3]) {
    nvmlReturn_t r = number(device, "mem_mib", &mib[0]);
    mib[1] = mib[2] = 0;
    if (r != NVML_SUCCESS) return r;
    (void)number(device, "reserved_mib", &mib[1]);
    return number(device, "used_mib", &mib[2]);
}

#define MIB(x) ((unsigned long long)(x) << 20)

nvmlReturn_t nvmlDeviceGetMemoryInfo(nvmlDevice_t device, nvmlMemory_t *m) {
    double mib[3];
    nvmlReturn_t r = memory(device, mib);
    if (r != NVML_SUCCESS) return r;
    m->total = MIB(mib[0]);
    m->used = MIB(mib[1]) + MIB(mib[2]);
    m->free = m->total - m->used;
    return r;
}

/* What a card tells that has utilisation at all. */
nvmlReturn_t nvmlDeviceGetUtilizationRates(nvmlDevice_t device, nvmlUtilization_t *u) {
    struct device *d;
    const char *mode;
    nvmlReturn_t r = enter_device(device, &d);
    if (r == NVML_SUCCESS && (d->mig || ((mode = get(d, "mig")) && strcmp(mode, "1") == 0)))
        r = NVML_ERROR_NOT_SUPPORTED;
    leave(r);
    if (r != NVML_SUCCESS) return r;
    r = number32(device, "util", &u->gpu);
    return r != NVML_SUCCESS ? r : number32(device, "mem_util", &u->memory);
}

nvmlReturn_t nvmlDeviceGetTemperature(nvmlDevice_t device, nvmlTemperatureSensors_t sensor,
                                      unsigned *v) {
    if (sensor != NVML_TEMPERATURE_GPU) return NVML_ERROR_INVALID_ARGUMENT;
    return number32(device, "temp", v);
}

nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t device, int count, nvmlFieldValue_t *fields) {
    for (int i = 0; i < count; i++) {
        nvmlReturn_t r = NVML_ERROR_NOT_SUPPORTED;
        if (fields[i].fieldId == NVML_FI_DEV_MEMORY_TEMP)
            r = number32(device, "mem_temp", &fields[i].value.uiVal);
        if (r == NVML_ERROR_GPU_IS_LOST) return r;
        fields[i].valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
        fields[i].nvmlReturn = r;
    }
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlDeviceGetPowerUsage(nvmlDevice_t device, unsigned *v) {
    return number32(device, "power_mw", v);
}

nvmlReturn_t nvmlDeviceGetEnforcedPowerLimit(nvmlDevice_t device, unsigned *v) {
    return number32(device, "limit_mw", v);
}

nvmlReturn_t nvmlDeviceGetTotalEnergyConsumption(nvmlDevice_t device, unsigned long long *v) {
    return number64(device, "energy_mj", v);
}

nvmlReturn_t nvmlDeviceGetClockInfo(nvmlDevice_t device, nvmlClockType_t type, unsigned *v) {
    return number32(device, type == NVML_CLOCK_MEM ? "mem_mhz" : "sm_mhz", v);
}

nvmlReturn_t nvmlDeviceGetCurrentClocksThrottleReasons(nvmlDevice_t device,
                                                       unsigned long long *v) {
    return number64(device, "throttle", v);
}

nvmlReturn_t nvmlDeviceGetPcieReplayCounter(nvmlDevice_t device, unsigned *v) {
    return number32(device, "replays", v);
}

nvmlReturn_t nvmlDeviceGetTotalEccErrors(nvmlDevice_t device, nvmlMemoryErrorType_t type,
                                         nvmlEccCounterType_t counter, unsigned long long *v) {
    static const char *keys[2][2] = {
        {"ecc_corrected", "ecc_corrected_ever"}, {"ecc_uncorrected", "ecc_uncorrected_ever"},
    };
    return number64(device, keys[type == NVML_MEMORY_ERROR_TYPE_UNCORRECTED]
                                [counter == NVML_AGGREGATE_ECC], v);
}

nvmlReturn_t nvmlDeviceGetRemappedRows(nvmlDevice_t device, unsigned *corrected,
                                       unsigned *uncorrected, unsigned *pending,
                                       unsigned *failed) {
    nvmlReturn_t r = number32(device, "remapped_corrected", corrected);
    if (r != NVML_SUCCESS) return r;
    *uncorrected = *pending = *failed = 0;
    (void)number32(device, "remapped_uncorrected", uncorrected);
    (void)number32(device, "remapped_pending", pending);
    (void)number32(device, "remapped_failed", failed);
    return r;
}

/* ---- MIG ---- */

nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t device, unsigned *current, unsigned *pending) {
    nvmlReturn_t r = number32(device, "mig", current);
    *pending = *current;
    return r;
}

nvmlReturn_t nvmlDeviceGetMaxMigDeviceCount(nvmlDevice_t device, unsigned *count) {
    unsigned mode;
    nvmlReturn_t r = number32(device, "mig", &mode);
    *count = 7;
    return r;
}

nvmlReturn_t nvmlDeviceGetMigDeviceHandleByIndex(nvmlDevice_t device, unsigned index,
                                                 nvmlDevice_t *mig) {
    struct device *d;
    nvmlReturn_t r = enter_device(device, &d);
    if (r != NVML_SUCCESS) return leave(r);
    for (int i = 0; i < script.devices; i++) {
        struct device *m = &script.device[i];
        const char *at = get(m, "index");
        if (m->mig && strcmp(m->parent, d->uuid) == 0 && at && strtoul(at, NULL, 10) == index) {
            *mig = handle_of(m->uuid);
            return leave(NVML_SUCCESS);
        }
    }
    return leave(NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t nvmlDeviceGetGpuInstanceId(nvmlDevice_t device, unsigned *id) {
    return number32(device, "gi", id);
}

nvmlReturn_t nvmlDeviceGetComputeInstanceId(nvmlDevice_t device, unsigned *id) {
    return number32(device, "ci", id);
}

nvmlReturn_t nvmlDeviceGetAttributes_v2(nvmlDevice_t device, nvmlDeviceAttributes_t *a) {
    double mib = 0;
    nvmlReturn_t r;
    memset(a, 0, sizeof *a);
    if ((r = number32(device, "gpu_slices", &a->gpuInstanceSliceCount)) != NVML_SUCCESS) return r;
    if ((r = number32(device, "compute_slices", &a->computeInstanceSliceCount)) != NVML_SUCCESS)
        return r;
    r = number(device, "mem_mib", &mib);
    a->memorySizeMB = (unsigned long long)mib;
    return r;
}

/* ---- Events ---- */

static int event_set;

nvmlReturn_t nvmlEventSetCreate(nvmlEventSet_t *set) {
    nvmlReturn_t r = enter();
    if (r == NVML_SUCCESS) {
        set->handle = (struct nvmlEventSet_st *)&event_set;
        delivered = 0;
        for (int i = 0; i < script.xids; i++) /* what was before is not told */
            if (script.xid[i].seq > delivered) delivered = script.xid[i].seq;
    }
    return leave(r);
}

nvmlReturn_t nvmlDeviceRegisterEvents(nvmlDevice_t device, unsigned long long types,
                                      nvmlEventSet_t set) {
    struct device *d;
    (void)types, (void)set;
    return leave(enter_device(device, &d));
}

nvmlReturn_t nvmlEventSetWait_v2(nvmlEventSet_t set, nvmlEventData_t *data, unsigned timeout) {
    struct xid *next = NULL;
    nvmlReturn_t r = enter();
    (void)set, (void)timeout;
    if (r != NVML_SUCCESS) return leave(r);
    for (int i = 0; i < script.xids; i++) {
        struct xid *x = &script.xid[i];
        if (x->seq > delivered && (next == NULL || x->seq < next->seq)) next = x;
    }
    if (next == NULL) return leave(NVML_ERROR_TIMEOUT);
    delivered = next->seq;
    memset(data, 0, sizeof *data);
    data->device = handle_of(next->uuid);
    data->eventType = nvmlEventTypeXidCriticalError;
    data->eventData = next->code;
    data->gpuInstanceId = next->gi;
    data->computeInstanceId = next->ci;
    return leave(NVML_SUCCESS);
}

nvmlReturn_t nvmlEventSetFree(nvmlEventSet_t set) {
    (void)set;
    return NVML_SUCCESS;
}

#ifndef OLD_DRIVER

/* ---- What drivers of 2021 do not have ---- */

nvmlReturn_t nvmlDeviceGetMemoryInfo_v2(nvmlDevice_t device, nvmlMemory_v2_t *m) {
    double mib[3];
    nvmlReturn_t r;
    if (m->version != nvmlMemory_v2) return NVML_ERROR_ARGUMENT_VERSION_MISMATCH;
    if ((r = memory(device, mib)) != NVML_SUCCESS) return r;
    m->total = MIB(mib[0]);
    m->reserved = MIB(mib[1]);
    m->used = MIB(mib[2]);
    m->free = m->total - m->reserved - m->used;
    return r;
}

nvmlReturn_t nvmlDeviceGetCurrentClocksEventReasons(nvmlDevice_t device, unsigned long long *v) {
    return number64(device, "throttle", v);
}

nvmlReturn_t nvmlDeviceGetComputeRunningProcesses_v3(nvmlDevice_t device, unsigned *count,
                                                     nvmlProcessInfo_t *infos) {
    struct device *d;
    unsigned n = 0;
    nvmlReturn_t r = enter_device(device, &d);
    if (r != NVML_SUCCESS) return leave(r);
    for (int i = 0; i < script.processes; i++) {
        struct process *p = &script.process[i];
        struct device *of = find(p->uuid);
        /* A card lists those of its MIG devices, too. */
        if (of == NULL || (of != d && strcmp(of->parent, d->uuid) != 0)) continue;
        if (n < *count) {
            const char *gi = get(of, "gi"), *ci = get(of, "ci");
            infos[n].pid = p->pid;
            infos[n].usedGpuMemory = p->bytes;
            infos[n].gpuInstanceId = gi ? strtoul(gi, NULL, 10) : NO_INSTANCE;
            infos[n].computeInstanceId = ci ? strtoul(ci, NULL, 10) : NO_INSTANCE;
        }
        n++;
    }
    r = n > *count ? NVML_ERROR_INSUFFICIENT_SIZE : NVML_SUCCESS;
    *count = n;
    return leave(r);
}

/* ---- GPM: what the chip's counters say between two samples ---- */

struct nvmlGpmSample_st {
    double at;
    char uuid[TEXT];
};

nvmlReturn_t nvmlGpmQueryDeviceSupport(nvmlDevice_t device, nvmlGpmSupport_t *support) {
    unsigned gpm = 0;
    nvmlReturn_t r = number32(device, "gpm", &gpm);
    support->isSupportedDevice = gpm;
    return r == NVML_ERROR_NOT_SUPPORTED ? NVML_SUCCESS : r;
}

nvmlReturn_t nvmlGpmSampleAlloc(nvmlGpmSample_t *sample) {
    sample->handle = calloc(1, sizeof *sample->handle);
    return sample->handle ? NVML_SUCCESS : NVML_ERROR_MEMORY;
}

nvmlReturn_t nvmlGpmSampleFree(nvmlGpmSample_t sample) {
    free(sample.handle);
    return NVML_SUCCESS;
}

nvmlReturn_t nvmlGpmSampleGet(nvmlDevice_t device, nvmlGpmSample_t sample) {
    struct device *d;
    nvmlReturn_t r = enter_device(device, &d);
    if (r == NVML_SUCCESS && get(d, "gpm") == NULL) r = NVML_ERROR_NOT_SUPPORTED;
    if (r != NVML_SUCCESS) return leave(r);
    sample.handle->at = now();
    copy(sample.handle->uuid, d->uuid, TEXT);
    return leave(r);
}

nvmlReturn_t nvmlGpmMigSampleGet(nvmlDevice_t device, unsigned gi, nvmlGpmSample_t sample) {
    struct device *d;
    nvmlReturn_t r = enter_device(device, &d);
    if (r != NVML_SUCCESS) return leave(r);
    for (int i = 0; i < script.devices; i++) {
        struct device *m = &script.device[i];
        const char *id = get(m, "gi");
        if (m->mig && strcmp(m->parent, d->uuid) == 0 && id && strtoul(id, NULL, 10) == gi) {
            sample.handle->at = now();
            copy(sample.handle->uuid, m->uuid, TEXT);
            return leave(NVML_SUCCESS);
        }
    }
    return leave(NVML_ERROR_NOT_FOUND);
}

nvmlReturn_t nvmlGpmMetricsGet(nvmlGpmMetricsGet_t *get_) {
    struct nvmlGpmSample_st *a = get_->sample1.handle, *b = get_->sample2.handle;
    struct device *d;
    nvmlReturn_t r = enter();
    if (r != NVML_SUCCESS) return leave(r);
    if (get_->version != NVML_GPM_METRICS_GET_VERSION || strcmp(a->uuid, b->uuid) != 0 ||
        a->at == 0 || b->at <= a->at || (d = find(b->uuid)) == NULL)
        return leave(NVML_ERROR_INVALID_ARGUMENT);
    for (unsigned i = 0; i < get_->numMetrics; i++) {
        const char *key = NULL, *v;
        switch (get_->metrics[i].metricId) {
        case NVML_GPM_METRIC_GRAPHICS_UTIL: key = "gpm_graphics"; break;
        case NVML_GPM_METRIC_SM_UTIL: key = "gpm_sm"; break;
        case NVML_GPM_METRIC_SM_OCCUPANCY: key = "gpm_occupancy"; break;
        case NVML_GPM_METRIC_ANY_TENSOR_UTIL: key = "gpm_tensor"; break;
        case NVML_GPM_METRIC_DRAM_BW_UTIL: key = "gpm_dram"; break;
        }
        v = key ? get(d, key) : NULL;
        get_->metrics[i].nvmlReturn = v ? NVML_SUCCESS : NVML_ERROR_NOT_SUPPORTED;
        get_->metrics[i].value = v ? number_at(v, b->at) : NAN;
    }
    return leave(NVML_SUCCESS);
}

#endif
