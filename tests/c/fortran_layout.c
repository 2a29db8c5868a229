/* What a Fortran program has filled in, as C sees it: every field has its own value. SPDX-License-Identifier: MIT */
#include "backsweep/c/backsweep.h"

static int dummy(const backsweep_action* action, void* user) {
    (void)action, (void)user;
    return 0;
}

backsweep_callback c_callback(void) {
    return dummy;
}

int64_t c_sizes(int64_t which) {
    static const int64_t sizes[] = {
        sizeof(backsweep_action),  sizeof(backsweep_options),    sizeof(backsweep_stored), sizeof(backsweep_callbacks),
        sizeof(backsweep_machine), sizeof(backsweep_prediction), sizeof(backsweep_level)};
    return sizes[which];
}

int c_sees_action(const backsweep_action* a) {
    return a->verb == BACKSWEEP_RESTART && a->from.tier == BACKSWEEP_DISK && a->from.index == 1 &&
           a->to.tier == BACKSWEEP_PINNED && a->to.index == 2 && a->reserved == 3 && a->first == INT64_C(1) << 40 &&
           a->last == INT64_C(1) << 41;
}

int c_sees_options(const backsweep_options* o) {
    return o->size == 1 && o->family == (const char*)o && o->steps == 2 && o->slots == 3 && o->period == 4 &&
           o->rule == (const char*)o && o->no_loss == 5 && o->needs_state == 6 && o->first == (const char*)o &&
           o->align == 7 && o->ram_slots == 8 && o->segments == 9 && o->depth == 10 && o->tape_units == 11 &&
           o->restart == 12 && o->reserved == 13 && (const void*)o->levels == (const void*)o && o->level_count == 14 &&
           o->advance_cost == 15 && o->reverse_cost == 16 && o->costs == NULL &&
           (const void*)o->sizes == (const void*)o && o->forward_time == NULL &&
           (const void*)o->backward_time == (const void*)o && o->state_bytes == NULL &&
           (const void*)o->tape_bytes == (const void*)o && o->forward_overhead == NULL &&
           (const void*)o->backward_overhead == (const void*)o && o->budget == 17;
}

int c_sees_level(const backsweep_level* l) {
    return l->tier == BACKSWEEP_DISK && l->reserved == 1 && l->slots == 2 && l->write == 3 && l->read == 4;
}

int c_sees_stored(const backsweep_stored* s) {
    return s->step == 1 && s->slot.tier == BACKSWEEP_DEVICE && s->slot.index == 2;
}

/* `last` is the one verb that is set. */
int c_sees_callbacks(const backsweep_callbacks* c, int32_t last) {
    const backsweep_callback all[] = {c->advance, c->record, c->tape,  c->reverse, c->save, c->load, c->take,
                                      c->restart, c->stow,   c->fetch, c->drop,    c->move, c->turn, c->otherwise};
    int32_t k;
    if (c->size != 1) return 0;
    for (k = 0; k < 14; ++k) {
        if (all[k] != (k == last ? dummy : NULL)) return 0;
    }
    return 1;
}

int c_sees_machine(const backsweep_machine* m) {
    const void* self = m;
    return m->size == 1 && m->advance == 2 && m->record == 3 && m->reverse == 4 && m->advance_of_link == self &&
           m->record_of_link == NULL && m->reverse_of_link == self && m->write[0] == 5 && m->write[3] == 6 &&
           m->read[0] == 7 && m->read[3] == 8 && m->state_bytes == 9 && m->tape_bytes == 10 &&
           m->bytes_of_state == NULL && m->bytes_of_tape == self && m->steps == 11 && m->ending == BACKSWEEP_LATE &&
           m->reserved == 12;
}

int c_sees_prediction(const backsweep_prediction* p) {
    return p->size == 1 && p->actions == 2 && p->advances == 3 && p->recorded == 4 && p->reversed == 5 &&
           p->writes[0] == 6 && p->writes[3] == 7 && p->reads[0] == 8 && p->reads[3] == 9 && p->peak_slots[0] == 10 &&
           p->peak_slots[3] == 11 && p->peak_bytes[0] == 12 && p->peak_bytes[3] == 13 && p->time == 14;
}

int c_sees_constants(const int32_t* verbs, const int32_t* tiers, const int32_t* statuses, const int32_t* endings) {
    int32_t k;
    for (k = 0; k < 14; ++k) {
        if (verbs[k] != k) return 0;
    }
    return verbs[0] == BACKSWEEP_ADVANCE && verbs[13] == BACKSWEEP_DONE && tiers[0] == BACKSWEEP_DEVICE &&
           tiers[1] == BACKSWEEP_PINNED && tiers[2] == BACKSWEEP_RAM && tiers[3] == BACKSWEEP_DISK &&
           statuses[0] == BACKSWEEP_OK && statuses[1] == BACKSWEEP_INVALID_ARGUMENT &&
           statuses[2] == BACKSWEEP_SCHEDULE_ERROR && statuses[3] == BACKSWEEP_FAILURE &&
           statuses[4] == BACKSWEEP_STOPPED && endings[0] == BACKSWEEP_CLOSED && endings[1] == BACKSWEEP_AHEAD &&
           endings[2] == BACKSWEEP_MET && endings[3] == BACKSWEEP_LATE;
}
