<?php

const TOLERANCE_SECONDS = 300;

/** $body is file_get_contents('php://input'), $signature is $_SERVER['HTTP_SERVICE_SIGNATURE'] ?? null. */
function is_genuine(string $body, ?string $signature, string $secret): bool
{
    $time = '';
    $given = [];
    foreach (explode(',', $signature ?? '') as $part) {
        [$name, $value] = explode('=', trim($part), 2) + ['', ''];
        if ($name === 't' && $time === '') {
            $time = $value;
        } elseif ($name === 'v1') {
            $given[] = $value;
        }
    }
    if (!preg_match('/^[0-9]{1,15}$/D', $time) || abs(time() - (int) $time) > TOLERANCE_SECONDS) {
        return false;
    }
    $expected = hash_hmac('sha256', "$time.$body", $secret);
    foreach ($given as $value) {
        if (hash_equals($expected, $value)) {
            return true;
        }
    }
    return false;
}
