"""From paths and pipes to blocks of 16 kHz mono float32."""
