// The events of one synthetic user: reproducible, in order, and with the structure that the shape states.
import { describe, expect, test } from 'vitest';
import { VideoCatalogue } from '../../src/data/synth/video-catalogue.js';
import { PERIOD_END, PERIOD_START } from '../../src/data/synth/clock.js';
import { resolveShape } from '../../src/data/synth/shape.js';
import { UserEvents } from '../../src/data/synth/user-events.js';

describe('a user', () => {
  test('watches at rising times inside the period, hardly a video twice, and reacts within reason', () => {
    const shape = resolveShape({ users: 60, videos: 30_000, meanLength: 800 });
    const events = new UserEvents(new VideoCatalogue(shape.videos, 1), 1);
    let [total, repeats, clicks, likes, faults] = [0, 0, 0, 0, 0];
    shape.lengths.forEach((length, user) => {
      events.start(user, length);
      const seen = new Set<number>();
      let before = PERIOD_START;
      for (let i = 0; i < length; i++, total++) {
        events.arrive();
        events.watch();
        if (events.timeMs < before) faults++;
        before = events.timeMs;
        if (seen.has(events.video)) repeats++;
        seen.add(events.video);
        clicks += events.feedback.click;
        likes += events.feedback.like;
        if (events.feedback.click === 0 && events.feedback.longView + events.feedback.like > 0) faults++;
      }
      expect(before).toBeLessThan(PERIOD_END);
    });
    expect(faults).toBe(0);
    expect(repeats / total).toBeLessThan(0.001);
    expect(Math.abs(clicks / total - 0.4)).toBeLessThan(0.1);
    expect(Math.abs(likes / total - 0.02)).toBeLessThan(0.01);
  });

  test('is more active in the evening than at night, in sessions', () => {
    const events = new UserEvents(new VideoCatalogue(20_000, 1), 1);
    const hours = new Float64Array(24);
    let longGaps = 0;
    for (let user = 0; user < 20; user++) {
      events.start(user, 400);
      let before = 0;
      for (let i = 0; i < 400; i++) {
        events.arrive();
        events.watch();
        hours[Math.floor((events.timeMs - PERIOD_START) / 3_600_000) % 24]!++;
        if (before > 0 && events.timeMs - before > 3_600_000) longGaps++;
        before = events.timeMs;
      }
    }
    expect(hours[20]! + hours[21]!).toBeGreaterThan(3 * (hours[3]! + hours[4]!));
    expect(longGaps / 20).toBeGreaterThan(10); // sessions apart
    expect(longGaps / 20).toBeLessThan(100); // of many events each
  });

  test('keeps to a few topics for a while, and to others later', () => {
    const catalogue = new VideoCatalogue(20_000, 1);
    const topicOf = new Int32Array(20_000);
    for (let topic = 0; topic < catalogue.topics; topic++) {
      for (let rank = 0; rank < catalogue.topicSize(topic); rank++) topicOf[catalogue.id(topic, rank)] = topic;
    }
    const events = new UserEvents(catalogue, 1);
    const shares = { near: 0, far: 0 };
    for (let user = 0; user < 30; user++) {
      events.start(user, 3000);
      const topics = Array.from({ length: 3000 }, () => {
        events.arrive();
        events.watch();
        return topicOf[events.video]!;
      });
      const first = new Set(topics.slice(0, 50));
      shares.near += topics.slice(50, 100).filter(topic => first.has(topic)).length / 50 / 30;
      shares.far += topics.slice(2950).filter(topic => first.has(topic)).length / 50 / 30;
    }
    expect(shares.near).toBeGreaterThan(0.6);
    expect(shares.far).toBeLessThan(0.2);
  });

  test('of the largest size still fits the period', () => {
    const events = new UserEvents(new VideoCatalogue(1_000_000, 1), 1);
    events.start(0, 228_000);
    let clamped = 0;
    for (let i = 0; i < 228_000; i++) {
      events.arrive();
      events.watch();
      if (events.timeMs === PERIOD_END - 1) clamped++;
    }
    expect(clamped).toBeLessThan(2_280);
  });

  test('clicks more on videos of a topic dear to them', () => {
    const events = new UserEvents(new VideoCatalogue(20_000, 1), 1);
    const clicks = { dear: [0, 0], other: [0, 0] };
    events.start(1, 20_000);
    for (let i = 0; i < 20_000; i++) {
      events.arrive();
      events.watch();
      const side = clicks[events.interest > 1 / 3 ? 'dear' : 'other'];
      side[0]! += events.feedback.click;
      side[1]!++;
    }
    expect(clicks.dear[0]! / clicks.dear[1]!).toBeGreaterThan(clicks.other[0]! / clicks.other[1]! + 0.05);
  });
});
