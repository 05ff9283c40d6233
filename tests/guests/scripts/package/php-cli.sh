#!/bin/sh
# PACKAGE0028 php-cli: runs a program with classes, JSON, dates and regular expressions
which php
cat >program.php <<'END'
<?php
declare(strict_types=1);
enum Suit: string { case Hearts = 'H'; case Spades = 'S'; }
final class Point { public function __construct(public readonly int $x, public int $y = 2) {} }
var_dump(new Point(1), Suit::from('S'));
echo json_encode(['a' => [1, null, 2.5], 'b' => 'é'], JSON_UNESCAPED_UNICODE), "\n";
echo preg_replace_callback('/\d+/', fn($m) => (string)($m[0] * 2), 'a1 b22'), "\n";
function numbers() { for ($i = 0; $i < 3; $i++) yield $i => $i ** 2; }
foreach (numbers() as $k => $v) echo "$k=>$v ";
echo "\n", hash('sha256', 'x'), "\n", gmdate('Y-m-d', 86400 * 365), "\n";
echo shell_exec('echo from a shell'), password_verify('secret', password_hash('secret', PASSWORD_BCRYPT, ['cost' => 4])) ? "right\n" : "wrong\n";
$pair = stream_socket_pair(STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0); fwrite($pair[0], "line\n"); echo fgets($pair[1]);
try { intdiv(1, 0); } catch (DivisionByZeroError $e) { echo $e->getMessage(), "\n"; }
file_put_contents('x', str_repeat('y', 1000)); echo filesize('x'), ' ', strlen(gzcompress(file_get_contents('x'))) < 50 ? 'small' : 'large', "\n";
exit(3);
END
php program.php
echo "status $?"
php -r 'echo PHP_OS, " ", array_sum(range(1, 100)), "\n";'
echo '<?php echo 1 +;' | php -l 2>/dev/null | sed '/^$/d'
