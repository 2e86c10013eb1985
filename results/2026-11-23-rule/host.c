/*
 * The rule `host` of package gc/policy in C99, and a check that it answers as the Go code does.
 *
 *     cc -O2 -std=c99 -ffp-contract=off -o host host.c -lm
 *     ./host < ../../gc/policy/testdata/vectors.txt
 *
 * Times are in ns, memory in bytes. A struct host that is all zero but for price and overhead is ready to use.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { SKIP, OVERLAP, BLOCK };
enum { ALLOCATION, SYNC };
enum { POLICY, REFUSAL, NATURAL, EXPLICIT };
enum { GRAINS = 64, RING = 2 * GRAINS, MARGINS = 7 };

#define MIB 1048576

struct point { int64_t now, at, live, limit, request, live_after, cost, work; int running; };
struct cycle { int64_t start, duration, work, exposed, trigger, freed; };
struct decision { int action; int64_t wake; };
struct moment { int64_t time, total; };

struct host {
	double price, overhead;
	int64_t busy, last, asleep, freed, held, began, wall;
	/* the rate of allocation */
	double rate; struct moment begin; int begun;
	/* what freed bytes have cost */
	double paid, got, early, cycles;
	/* drills */
	int64_t grain, next; struct moment reached[RING];
	double hidden[MARGINS], given[MARGINS], sum, cost; int margin;
};

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t bytes(double x) { return !(x > 0) ? 0 : x >= 9223372036854775807.0 ? INT64_MAX : (int64_t)x; }
static int64_t work_of(int64_t work, int64_t length) { return work > 0 ? work : length; }
static int64_t margin_of(const struct host *h, int m) { return ((int64_t)1 << m >> 1) * h->grain; }

static void see_rate(struct host *h, struct moment now, const struct point *p)
{
	int64_t length = now.time - h->begin.time;
	if (!h->begun || now.total < h->begin.total) {
		h->begin = now, h->begun = 1;
	} else if (length >= p->cost) {
		double grown = (double)(now.total - h->begin.total + p->request);
		h->rate = 0.8 * h->rate + (1 - 0.8) * grown / (double)max64(1, length);
		h->begin = now;
	}
}

static void reach(struct host *h, int64_t grain, struct moment now)
{
	for (h->next = max64(h->next, grain - RING + 1); h->next <= grain; h->next++)
		h->reached[(uint64_t)h->next % RING] = now;
}

/* judge scores every margin for an end of memory at a grain. */
static void judge(struct host *h, int64_t wall, struct moment now, double g, int64_t headroom, const int64_t walls[2])
{
	const double keep1 = 1 - 1. / 2048;
	double w = 1, keep;
	for (int i = 0; i < 2; i++)
		if (wall == (walls[i] + h->grain - 1) / h->grain)
			w = 32;
	keep = 1 - w * (1 - keep1);
	h->sum = keep * h->sum + w;
	struct moment *first = &h->reached[(uint64_t)(wall - min64(max64(1, headroom / h->grain), GRAINS)) % RING];
	for (int m = 0; m < MARGINS; m++) {
		h->hidden[m] *= keep, h->given[m] *= keep;
		int64_t start = wall - ((int64_t)1 << m >> 1);
		if (start >= h->next)
			continue;
		struct moment *x = &h->reached[(uint64_t)start % RING];
		if (x->total < first->total)
			x = first;
		double passed = (double)(now.time - x->time);
		h->hidden[m] += w * (passed > g ? 1 : passed / fmax(1, g));
		h->given[m] += w * (double)max64(0, min64(wall * h->grain, now.total) - x->total);
	}
}

static double cost_of(const struct host *h, int m, double price, double g) { return price * h->given[m] - g * h->hidden[m]; }

/* early is the room before the limit with which a cycle starts. */
static int64_t early(struct host *h, const struct point *p, struct moment now)
{
	double g = (double)p->cost, drilled = 0.05 * g + h->cost, price;
	int64_t limit = p->limit, grain = max64(1, limit / GRAINS), from, top, wall;
	int64_t walls[2] = { h->freed + limit, h->wall };
	price = h->got <= 0 ? drilled / (double)max64(1, limit) : sqrt(h->paid / h->got * drilled * h->cycles / (h->got + h->early));
	if (!(4 * grain > 3 * h->grain && 2 * grain < 3 * h->grain)) {
		h->grain = grain;
		h->next = now.total / grain - RING + 1;
		reach(h, now.total / grain, now);
	}
	from = h->next, top = (now.total + p->request) / h->grain;
	reach(h, top, now);
	if (from <= top) {
		for (wall = max64(from, top - GRAINS); wall <= top; wall++)
			judge(h, wall, now, g, max64(1, limit - p->live_after), walls);
		double least = cost_of(h, h->margin, price, g);
		for (int m = MARGINS - 1; m >= 0; m--)
			if (cost_of(h, m, price, g) <= least)
				least = cost_of(h, m, price, g), h->margin = m;
		h->cost = g + least / fmax(1, h->sum);
	}
	if ((double)(now.total + p->request - h->began) < 0.5 * (double)(limit - p->live - p->request))
		return 0;
	return margin_of(h, h->margin);
}

/* end is the live bytes at which headroom ends that the price grants. */
static int64_t end_of(const struct host *h, const struct point *p)
{
	double w = (double)work_of(p->work, p->cost);
	int64_t room = INT64_MAX;
	if (h->price > 0)
		room = max64(2 * MIB, bytes(sqrt(w * h->rate / h->price)));
	else if (h->overhead > 0)
		room = max64(2 * MIB, bytes(4 * w * h->rate / h->overhead));
	room -= min64(room / 2, bytes(h->rate * (double)p->cost));
	return min64(p->live_after, INT64_MAX - room) + room;
}

static int64_t due_at(const struct host *h, int64_t w)
{
	double period = (double)w / h->overhead, owed = (double)(h->busy + w) / h->overhead - (double)h->last;
	return h->last + (int64_t)fmin(fmax(owed, fmin(period, (double)w / 0.25)), 2 * period);
}

struct decision decide(struct host *h, const struct point *p)
{
	int64_t granted = p->live + p->request, end;
	int due = h->overhead > 0 && p->now >= due_at(h, work_of(p->work, p->cost));
	struct moment now = { p->now - h->held, p->live + h->freed };
	struct decision d = { SKIP, h->asleep };
	if (!due && p->at == ALLOCATION && granted < h->asleep)
		return d;
	see_rate(h, now, p);
	end = end_of(h, p);
	if (p->limit > 0)
		end = min64(end, p->limit - early(h, p, now));
	d.wake = h->asleep = p->live + 1 + (max64(0, end) >> 10);
	if (p->running)
		;
	else if (p->limit > 0 && granted > p->limit)
		d.action = BLOCK;
	else if (due || granted > end)
		d.action = OVERLAP;
	if (d.action != SKIP)
		h->began = now.total, h->wall = h->freed + p->limit;
	return d;
}

void observe(struct host *h, const struct cycle *c)
{
	int64_t w = work_of(c->work, c->duration);
	h->freed += c->freed;
	h->held += c->exposed;
	h->busy = max64(h->busy, (int64_t)(h->overhead * (double)c->start) - 8 * w) + w;
	h->last = c->start, h->asleep = 0;
	if (c->trigger == NATURAL)
		return;
	h->paid = 0.85 * h->paid + ((double)c->exposed + 0.05 * (double)c->duration);
	h->got = 0.85 * h->got + (double)c->freed;
	h->early = 0.85 * h->early + (double)max64(0, h->wall - h->began);
	h->cycles = 0.85 * h->cycles + 1;
	h->wall = 0;
}

int main(void)
{
	struct host h = { .price = 2e-8, .overhead = 0.01 };
	char line[1024];
	int points = 0, starts = 0;
	while (fgets(line, sizeof line, stdin)) {
		double x[20];
		int n = 0;
		for (char *s = strtok(line, "[],\n"); s && n < 20; s = strtok(NULL, "[],\n"))
			n += sscanf(s, "%lf", &x[n]);
		if (n == 11) {
			struct cycle c = { (int64_t)x[1], (int64_t)x[2], (int64_t)x[3], (int64_t)x[4], (int64_t)x[5], (int64_t)x[7] };
			observe(&h, &c);
		} else if (n == 19) {
			struct point p = { (int64_t)x[1], (int64_t)x[2], (int64_t)x[3], (int64_t)x[5], (int64_t)x[6], (int64_t)x[11], (int64_t)x[12], (int64_t)x[13], x[15] == 1 };
			struct decision d = decide(&h, &p);
			points++, starts += d.action != SKIP;
			if (d.action != (int)x[17] || d.wake != (int64_t)x[18]) {
				printf("point %d: action %d, wake %lld; want %d, %lld\n", points, d.action, (long long)d.wake, (int)x[17], (long long)x[18]);
				return 1;
			}
		}
	}
	printf("%d points, %d cycles started: all as in Go\n", points, starts);
	return points == 0;
}
